"""The seam: parts are found by name, built with their options, refused kindly, and their hooks are called."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from networks import ENTRIES, SMALL, choices, decoder, encoder, some_tokens
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.attention import KVCache
from fairtrial.model.layers import capture
from fairtrial.model.network import Classifier
from fairtrial.model.part import HOOKS, AttentionContext, Part, build_parts, parts
from fairtrial.recipe import PartChoice, Shape

pytestmark = pytest.mark.usefixtures("plugins")


@pytest.mark.parametrize(("hook", "owner"), [("merge", "backwards"), ("pool", "first")])
def test_two_overrides_of_an_exclusive_hook_are_refused(hook: str, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._things, "second", type("Second", (parts.find(owner),), {}))
    with pytest.raises(BadInput, match=f"'{owner}' and 'second' both override '{hook}'"):
        Classifier(SMALL, choices(owner, "learned", "second"), ENTRIES, 3)
    Classifier(SMALL, choices(owner, "learned"), ENTRIES, 3)
    Classifier(SMALL, choices("backwards", "first"), ENTRIES, 3)  # one override each is fine


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
    hooks = ("embed", "rotate", "bias", "score", "allow", "merge", "pool")
    owned = {
        name: {hook for hook in hooks if parts.find(name).overrides(hook)}
        for name in ("none", "learned", "slope", "first")
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


def test_the_override_of_pool_makes_the_sentence_vector() -> None:
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


def test_every_verb_is_an_identity_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that overrides them all by their own defaults changes nothing, nor does one with a plain attribute that
    happens to have a hook's name."""

    def by_default(hook: str) -> Any:
        return lambda self, *given: getattr(Part, hook)(self, *given)

    overridden = [hook for hook in HOOKS if hook != "features"]  # its default is no kernel
    monkeypatch.setitem(parts._things, "all", type("All", (Part,), {hook: by_default(hook) for hook in overridden}))

    class Shadow(Part):
        def __init__(self, shape: Shape) -> None:
            super().__init__(shape)
            self.mix = self.feed_forward = torch.nn.Linear(2, 2)

    monkeypatch.setitem(parts._things, "shadow", Shadow)
    assert parts.find("all").hooks == set(overridden)
    ids, lengths = some_tokens(3, 6), torch.tensor([6, 2, 4])
    for make in (encoder, decoder):
        expected = make("none")(ids, lengths)
        torch.testing.assert_close(make("all")(ids, lengths), expected, atol=1e-12, rtol=1e-12)
        torch.testing.assert_close(make("shadow")(ids, lengths), expected, atol=0, rtol=0)


def test_a_verb_that_nobody_owns_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    new = ("arrange", "key_heads", "project", "attach", "features", "weigh", "mix", "read", "feed_forward")
    for hook in new:
        monkeypatch.setattr(Part, hook, lambda *given, hook=hook: pytest.fail(f"{hook} was called"))
    for make in (encoder, decoder):
        with capture(network := make("learned")):
            network(some_tokens(2, 5))
        network(some_tokens(2, 5))


class Few(Part):
    """Two heads share one head of keys and values."""

    def key_heads(self) -> int:
        return 1


def test_heads_that_share_keys_start_as_the_first_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._things, "few", Few)
    for start in ("torch", "small"):
        plain, shared = (decoder(name, start=start).body.blocks[1].attention.qkv for name in ("none", "few"))
        assert shared.weight.shape == (16 + 8 + 8, 16)
        for ours, full in ((shared.weight, plain.weight), (shared.bias, plain.bias)):
            assert torch.equal(ours, torch.cat((full[:16], full[16:24], full[32:40])))
    # as many as all: with the same keys for both heads, the full layer answers alike
    ids, network, full = some_tokens(2, 6), decoder("few"), decoder("none")
    with torch.no_grad():
        for block in full.body.blocks:
            for weight in block.attention.qkv.parameters():
                weight.copy_(weight[torch.tensor([*range(24), *range(16, 24), *range(32, 40), *range(32, 40)])])
    torch.testing.assert_close(network(ids), full(ids), atol=1e-12, rtol=1e-12)


def test_what_a_part_attaches_comes_with_the_keys_also_from_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loud(Part):
        def attach(self, x: Tensor, context: AttentionContext) -> Tensor:
            return x[..., :2]

        def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
            return scores + context.attached[self].transpose(1, 2)[:, :, None, :]

    monkeypatch.setitem(parts._things, "loud", Loud)
    network, ids = decoder("loud"), some_tokens(3, 9)
    full, cache = network(ids), KVCache(2)
    pieces = [network(piece, cache=cache) for piece in ids.split([4, 1, 1, 3], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), full, atol=1e-12, rtol=1e-12)
    assert (full - decoder("none")(ids)).abs().max() > 1e-6
    padded = encoder("loud")(ids, torch.tensor([9, 4, 2]))
    alone = torch.cat([encoder("loud")(ids[row : row + 1, :size]) for row, size in enumerate((9, 4, 2))])
    torch.testing.assert_close(padded, alone, atol=1e-12, rtol=1e-12)


class Exponential(Part):
    """Any positive features will do."""

    def features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q.exp(), k.exp()


def test_any_positive_features_give_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._things, "exponential", Exponential)
    ids = torch.randint(ENTRIES, (3, 9), generator=torch.Generator().manual_seed(0))
    for make in (encoder, decoder):
        network = make("exponential")
        with capture(network) as seen:
            logits = network(ids)
        weights = next(tensor for name, tensor in seen.items() if name.endswith("maps"))
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        assert (logits - make("none")(ids)).abs().max() > 1e-6


def test_a_part_says_where_it_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lonely(Few):
        excludes = {"bias": "it knows no bias"}  # noqa: RUF012
        decoder_only = "it looks back"

    class Sideways(Part):
        def arrange(self, x: Tensor, attention: Any, feed_forward: Any, layer: int) -> Tensor:
            return x + attention(x) + feed_forward(x)

    monkeypatch.setitem(parts._things, "lonely", Lonely)
    monkeypatch.setitem(parts._things, "sideways", Sideways)
    for names in (("lonely", "slope"), ("slope", "lonely")):
        with pytest.raises(BadInput, match="'lonely' and 'slope' do not combine: it knows no bias"):
            decoder(*names)
    with pytest.raises(BadInput, match="part 'lonely' works in a decoder only: it looks back"):
        encoder("lonely")
    decoder("lonely", "learned")
    with pytest.raises(BadInput, match="'sideways' arranges pre-norm blocks"):
        decoder("sideways", norm_place="post")
    decoder("sideways")


def test_no_verb_can_show_what_attention_has_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    class Peek(Part):
        def weigh(self, scores, context):
            return scores.softmax(-1) + (scores < -1e300)

        def mix(self, weights, context):
            return weights + (weights == 0)

        def allow(self, context):
            return torch.ones_like(context.offset, dtype=torch.bool)

        def score(self, scores, q, k, context):
            return scores + 1e6 * (context.offset < 0)

        def bias(self, context):
            return 1e6 * (context.offset < 0).double().expand(self.shape.heads, -1, -1)

    monkeypatch.setitem(parts._things, "peek", Peek)
    ids = some_tokens(2, 6)
    network = decoder("peek")
    with capture(network) as seen:
        answer = network(ids)
    for maps in seen.values():
        assert (maps.triu(1) == 0).all()
        assert (maps.diagonal(dim1=-2, dim2=-1) > 0).any()
    torch.testing.assert_close(answer, decoder("none")(ids), atol=1e-12, rtol=1e-12)
    reader = encoder("peek")
    with capture(reader) as seen:
        reader(ids, torch.tensor([6, 3]))
    for maps in seen.values():
        assert (maps[1, :, :, 3:] == 0).all()  # padding stays hidden
        assert (maps[0, :, :-1, -1] > 0).all()  # where all is real, the future may be seen


def test_capturing_ends_with_its_block() -> None:
    network = decoder("none")
    with capture(network) as seen:
        pass
    network(some_tokens(1, 4))
    assert seen == {}
