"""A prefix vector takes part in attention like a token, in encoders."""

from __future__ import annotations

import torch

import fairtrial.parts  # noqa: F401
from fairtrial.model.layers import capture
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.recipe import PartChoice, Shape

SHAPE = Shape(layers=2, width=16, heads=2, length=12, hidden=20, dropout=0.0)
CLS = [PartChoice(name="learned"), PartChoice(name="pool-cls")]


def test_the_cls_vector_is_seen_by_all_tokens_and_sees_all_of_them() -> None:
    network = Classifier(SHAPE, CLS, 30, 3).double()
    ids, lengths = torch.randint(0, 30, (2, 12)), torch.tensor([4, 12])
    with capture(network) as seen:
        network(ids, lengths)
    maps = seen["body.blocks.0.attention.maps"]
    assert maps.shape == (2, 2, 13, 13)
    assert (maps[0, :, 0, :5] > 0).all()
    assert (maps[0, :, :, 5:] == 0).all()  # 4 tokens and the vector before them


def test_a_sentence_of_full_length_has_room_for_it() -> None:
    network = Classifier(SHAPE, CLS, 30, 3).double()
    ids = torch.randint(0, 30, (3, 12))
    alone = torch.cat([network(row[None]) for row in ids])
    assert torch.allclose(network(ids), alone, atol=1e-12)


def test_padding_and_batch_mates_do_not_matter_to_it() -> None:
    network = Classifier(SHAPE, CLS, 30, 3).double()
    ids, lengths = torch.randint(0, 30, (3, 12)), torch.tensor([3, 12, 7])
    together = network(ids, lengths)
    for row in range(3):
        alone = network(ids[row : row + 1, : lengths[row]])
        assert torch.allclose(together[row], alone[0], atol=1e-12)
    other = ids.clone()
    other[0, 3:] = 1
    assert torch.allclose(network(other, lengths), together, atol=1e-12)
    other[0, 2] = (other[0, 2] + 1) % 30
    assert not torch.allclose(network(other, lengths)[0], together[0], atol=1e-6)  # a real token does matter


def test_a_decoder_has_no_use_for_it() -> None:
    ids = torch.randint(0, 30, (2, 12))
    assert LanguageModel(SHAPE, CLS, 30)(ids).shape == (2, 12, 30)
