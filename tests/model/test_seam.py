"""The seam: parts are found by name, built with their options, refused kindly, and their verbs are called."""

from __future__ import annotations

import pytest
import torch
from networks import ENTRIES, SMALL, choices, decoder, encoder, some_tokens
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.layers import watch
from fairtrial.model.network import Classifier
from fairtrial.model.part import Part, Site, build_parts, parts
from fairtrial.recipe import PartChoice

pytestmark = pytest.mark.usefixtures("plugins")


@pytest.mark.parametrize(("verb", "owner"), [("merge", "backwards"), ("pool", "first")])
def test_two_owners_of_one_verb_are_refused(verb: str, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._things, "second", type("Second", (parts.find(owner),), {}))
    with pytest.raises(BadInput, match=f"'{owner}' and 'second' both own '{verb}'"):
        Classifier(SMALL, choices(owner, "learned", "second"), ENTRIES, 3)
    Classifier(SMALL, choices(owner, "learned"), ENTRIES, 3)
    Classifier(SMALL, choices("backwards", "first"), ENTRIES, 3)  # one owner each is fine


def test_a_part_named_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="'learned' is named twice"):
        build_parts(choices("learned", "none", "learned"), SMALL, 0)


def test_an_option_that_a_part_does_not_have_is_refused() -> None:
    with pytest.raises(BadInput, match=r"part 'coin': .*sidess") as caught:
        build_parts([PartChoice(name="coin", options={"sidess": 3})], SMALL, 0)
    assert "Coin" in caught.value.hint
    right = build_parts([PartChoice(name="coin", options={"sides": 3})], SMALL, 0)
    assert right["coin"].thrown.shape == (3,)


def test_an_unknown_part_is_refused_with_a_near_name() -> None:
    with pytest.raises(BadInput, match="no part is called 'lerned'; did you mean 'learned'"):
        build_parts(choices("lerned"), SMALL, 0)


def test_parts_are_built_in_the_order_of_the_recipe() -> None:
    assert list(build_parts(choices("none", "learned", "coin"), SMALL, 0)) == ["none", "learned", "coin"]


def test_a_part_owns_the_verbs_that_it_overrides() -> None:
    verbs = ("embed", "rotate", "bias", "score", "allow", "merge", "pool")
    owned = {
        name: {verb for verb in verbs if parts.find(name).owns(verb)} for name in ("none", "learned", "slope", "first")
    }
    assert owned == {"none": set(), "learned": {"embed"}, "slope": {"bias"}, "first": {"pool"}}


def test_layers_add_to_what_a_part_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both layers of every block, in the encoder and in the decoder, pre-norm and post-norm."""

    class Half(Part):
        def residual(self, x: Tensor, read: Tensor) -> Tensor:
            return x / 2 + 0 * read

    monkeypatch.setitem(parts._things, "halved", Half)
    for make in (encoder, decoder):
        for place in ("pre", "post"):
            network = make("halved", norm_place=place)
            block = network.body.blocks[0]
            for last in (block.attention.out, block.feed_forward.down):
                for weight in last.parameters():
                    weight.data.zero_()
            seen: list[Tensor] = []
            block.register_forward_pre_hook(lambda module, given, seen=seen: seen.append(given[0]))
            block.register_forward_hook(lambda module, given, said, seen=seen: seen.append(said))
            network(some_tokens(2, 5))
            expected = seen[0] / 4
            if place == "post":
                expected = block.forward_norm(block.attention_norm(seen[0] / 2) / 2)
            torch.testing.assert_close(seen[1], expected, atol=1e-12, rtol=1e-12)


def test_a_part_written_with_the_old_verbs_works() -> None:
    class Doubled(parts.find("rope")):  # type: ignore[misc]
        def turn(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
            q, k = super().turn(q, k, site)
            return 2 * q, k

    class Mixin:
        def reach(self, causal: bool) -> tuple[int, int]:
            return 3, 0

    class Old(Mixin, Part):
        def carry(self, x: Tensor, read: Tensor) -> Tensor:
            return x + read

    site, q = Site(0, True, torch.arange(4), torch.arange(4)), torch.randn(1, 2, 4, 8)
    rope = parts.find("rope")(SMALL)
    assert torch.equal(Doubled(SMALL).rotate(q, q, site)[0], 2 * rope.rotate(q, q, site)[0])
    assert Old(SMALL).window(True) == (3, 0)
    assert Old(SMALL).residual(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
    assert [Old.owns(verb) for verb in ("rotate", "window", "residual")] == [False, True, True]
    assert not any(parts.find("none").owns(verb) for verb in ("rotate", "window", "residual"))


def test_the_owner_of_pool_makes_the_sentence_vector() -> None:
    ids, lengths = some_tokens(3, 6), torch.tensor([6, 2, 4])
    network = encoder("first")
    x, layout = network.body(ids, lengths)
    expected = network.out(network.activation(network.hidden(layout.unpack(x)[:, 0])))
    torch.testing.assert_close(network(ids, lengths), expected, atol=1e-12, rtol=1e-12)
    assert (network(ids, lengths) - encoder("none")(ids, lengths)).abs().max() > 1e-6


def test_the_default_pool_is_the_mean_over_real_tokens() -> None:
    ids, lengths = some_tokens(3, 6), torch.tensor([6, 2, 4])
    x, layout = encoder("none").body(ids, lengths)
    by_hand = torch.stack([rows.mean(0) for rows in x.split(lengths.tolist())])
    torch.testing.assert_close(layout.mean(x), by_hand, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(Part(SMALL).pool(layout.unpack(x), layout.real()), by_hand, atol=1e-12, rtol=1e-12)


def test_the_owner_of_merge_joins_the_heads() -> None:
    """Heads joined last first, and the output matrix's columns swapped likewise, give what they gave."""
    ids = some_tokens(2, 6)
    plain, turned = decoder("none"), decoder("backwards")
    assert (turned(ids) - plain(ids)).abs().max() > 1e-6
    with torch.no_grad():
        for block in turned.body.blocks:
            weight = block.attention.out.weight
            weight.copy_(weight.unflatten(1, (2, -1)).flip(1).flatten(1))
    torch.testing.assert_close(turned(ids), plain(ids), atol=1e-12, rtol=1e-12)


def test_no_verb_can_show_what_attention_has_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    class Peek(Part):
        def allow(self, site):
            return torch.ones_like(site.offset, dtype=torch.bool)

        def score(self, scores, q, k, site):
            return scores + 1e6 * (site.offset < 0)

        def bias(self, site):
            return 1e6 * (site.offset < 0).double().expand(self.shape.heads, -1, -1)

    monkeypatch.setitem(parts._things, "peek", Peek)
    ids = some_tokens(2, 6)
    network = decoder("peek")
    with watch(network) as seen:
        answer = network(ids)
    for maps in seen.values():
        assert (maps.triu(1) == 0).all()
        assert (maps.diagonal(dim1=-2, dim2=-1) > 0).any()
    torch.testing.assert_close(answer, decoder("none")(ids), atol=1e-12, rtol=1e-12)
    reader = encoder("peek")
    with watch(reader) as seen:
        reader(ids, torch.tensor([6, 3]))
    for maps in seen.values():
        assert (maps[1, :, :, 3:] == 0).all()  # padding stays hidden
        assert (maps[0, :, :-1, -1] > 0).all()  # where all is real, the future may be seen


def test_watching_ends_with_its_block() -> None:
    network = decoder("none")
    with watch(network) as seen:
        pass
    network(some_tokens(1, 4))
    assert seen == {}
