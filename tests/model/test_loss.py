"""The loss over a vocabulary equals torch's cross entropy, in value and in every gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtrial.model import loss
from fairtrial.model.loss import CHUNK, SampledWords, Scratch, VocabularyLoss, vocabulary_nats
from sampling import cases, sample

WIDTH, ENTRIES = 7, 19
EXACT = {"atol": 1e-10, "rtol": 1e-10}
Inputs = tuple[Tensor, Tensor, Tensor, Tensor]


def some(tokens: int, dtype: torch.dtype = torch.float64) -> Inputs:
    """hidden, weight, bias (all want gradients), targets"""
    rng = torch.Generator().manual_seed(tokens)
    shapes = (tokens, WIDTH), (ENTRIES, WIDTH), (ENTRIES,)
    hidden, weight, bias = (torch.randn(*shape, generator=rng, dtype=dtype).requires_grad_() for shape in shapes)
    return hidden, weight, bias, torch.randint(ENTRIES, (tokens,), generator=rng)


def ours(inputs: Inputs, smoothing: float, scale: float, scratch: Scratch | None = None) -> tuple[Tensor, Tensor]:
    """(objective, nats)"""
    return VocabularyLoss.apply(*inputs, smoothing, scale, scratch or Scratch())


def by_torch(inputs: Inputs, smoothing: float, scale: float) -> Tensor:
    hidden, weight, bias, targets = inputs
    return cross_entropy(hidden @ weight.t() + bias, targets, label_smoothing=smoothing, reduction="sum") * scale


@sample(
    12,
    tokens=(1, CHUNK - 1, CHUNK, CHUNK + 1, 200),
    smoothing=(0.0, 0.1, 1.0),
    scale=(1.0, 1 / 37),
    upstream=(1.0, -3.5),
)
def test_value_and_gradients_equal_torchs(tokens: int, smoothing: float, scale: float, upstream: float) -> None:
    inputs = some(tokens)
    expected = by_torch(inputs, smoothing, scale)
    expected_gradients = torch.autograd.grad(expected * upstream, inputs[:3])
    objective, nats = ours(inputs, smoothing, scale)
    torch.testing.assert_close(objective, expected, **EXACT)
    torch.testing.assert_close(nats, by_torch(inputs, 0.0, 1.0).detach(), **EXACT)  # plain and unscaled, always
    found = torch.autograd.grad(objective * upstream, inputs[:3])
    for gradient, wanted in zip(found, expected_gradients, strict=True):
        assert wanted.abs().max() > 1e-6
        torch.testing.assert_close(gradient, wanted, **EXACT)


def test_smoothing_changes_the_objective_and_not_the_nats() -> None:
    inputs = some(10)
    plain, smooth = (ours(inputs, smoothing, 1.0) for smoothing in (0.0, 0.1))
    assert abs(float((plain[0] - smooth[0]).detach())) > 1e-3
    assert torch.equal(plain[1], smooth[1])
    assert not plain[1].requires_grad


@sample(4, smoothing=(0.0, 0.1, 1.0), tokens=(3, CHUNK + 2))
def test_gradients_equal_finite_differences(smoothing: float, tokens: int) -> None:
    *weights, targets = some(tokens)
    assert torch.autograd.gradcheck(
        lambda hidden, weight, bias: ours((hidden, weight, bias, targets), smoothing, 0.3)[0],
        weights,
        fast_mode=tokens > CHUNK,
    )


@cases("dtype", [torch.float32, torch.float64])
@cases("smoothing", [0.0, 0.1])
def test_extreme_logits_stay_finite(dtype: torch.dtype, smoothing: float) -> None:
    hidden, weight, _, targets = some(70, dtype)
    extreme = torch.linspace(-1e4, 1e4, ENTRIES, dtype=dtype).requires_grad_()
    inputs = (hidden, weight, extreme, targets)
    objective, nats = ours(inputs, smoothing, 1.0)
    assert float(nats) > 1e4  # they are extreme
    torch.testing.assert_close(objective, by_torch(inputs, smoothing, 1.0), atol=1e-2, rtol=1e-5)
    for gradient in torch.autograd.grad(objective, inputs[:3]):
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0
    assert vocabulary_nats(*(each.detach() for each in inputs)).isfinite().all()


@cases("tokens", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 200])
def test_nats_for_scoring_equal_torchs_token_by_token(tokens: int) -> None:
    hidden, weight, bias, targets = inputs = tuple(each.detach() for each in some(tokens))
    nats = vocabulary_nats(*inputs)
    expected = cross_entropy(hidden @ weight.t() + bias, targets, reduction="none")
    assert nats.dtype == torch.float64
    torch.testing.assert_close(nats, expected, **EXACT)
    torch.testing.assert_close(nats.sum(), ours(inputs, 0.0, 1.0)[1], **EXACT)


def test_float32_stays_close_to_float64() -> None:
    inputs = some(200, torch.float32)
    objective, nats = ours(inputs, 0.1, 1 / 200)
    doubles = (*(each.double() for each in inputs[:3]), inputs[3])
    assert objective.dtype == torch.float32
    assert nats.dtype == torch.float64
    torch.testing.assert_close(objective.double(), by_torch(doubles, 0.1, 1 / 200), atol=1e-6, rtol=1e-6)
    found = torch.autograd.grad(objective, inputs[:3])
    wanted = torch.autograd.grad(by_torch(doubles, 0.1, 1 / 200), inputs[:3])
    for gradient, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-4)


def test_gradients_add_up_when_one_loss_is_sent_back_three_times() -> None:
    inputs = some(5)
    once = torch.autograd.grad(by_torch(inputs, 0.0, 1.0), inputs[:3])
    objective, _ = ours(inputs, 0.0, 1.0)
    for _ in range(3):
        objective.backward(retain_graph=True)
    for tensor, gradient in zip(inputs[:3], once, strict=True):
        torch.testing.assert_close(tensor.grad, 3 * gradient, **EXACT)


def test_inputs_are_left_as_they_were() -> None:
    inputs = some(70)
    before = [each.detach().clone() for each in inputs]
    ours(inputs, 0.1, 2.0)[0].backward()
    assert all(torch.equal(each, kept) for each, kept in zip(inputs, before, strict=True))


def test_memory_kept_from_step_to_step_carries_nothing_over() -> None:
    scratch = Scratch()
    for tokens, dtype in ((200, torch.float64), (3, torch.float64), (70, torch.float32), (1, torch.float64)):
        inputs = some(tokens, dtype)
        fresh, kept = (ours(inputs, 0.1, 1.0, memory) for memory in (None, scratch))
        assert torch.equal(fresh[0], kept[0])
        wanted = torch.autograd.grad(fresh[0], inputs[:3])
        ours(some(90, dtype), 0.0, 1.0, scratch)  # another loss in between must not disturb gradients still to be sent
        for gradient, expected in zip(torch.autograd.grad(kept[0], inputs[:3]), wanted, strict=True):
            assert torch.equal(gradient, expected)


def test_the_projection_without_onednn_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch does not bring oneDNN's product, its public one does the work."""
    x, weight, bias = torch.randn(7, 16), torch.randn(50, 16), torch.randn(50)
    expected = torch.nn.functional.linear(x, weight, bias)
    torch.testing.assert_close(loss.project(x, weight, bias), expected)
    monkeypatch.setattr(loss, "onednn", lambda: False)
    torch.testing.assert_close(loss.project(x, weight, bias), expected)
    torch.testing.assert_close(loss.project(x, weight, None), torch.nn.functional.linear(x, weight))


def test_a_product_that_fails_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bits would be others: a trial whose memory was short for a moment would go on to other numbers."""

    def fail(*given: object) -> None:
        raise RuntimeError("could not create a primitive")

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", fail, raising=False)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    loss.onednn.cache_clear()
    with pytest.raises(RuntimeError, match="primitive"):
        loss.onednn()
    loss.onednn.cache_clear()


def test_a_sampled_loss_estimates_the_sum_over_all_words() -> None:
    """Many draws: the mean of the estimated sum of exponentials is the exact one. All words drawn: it is exact."""
    hidden, weight, bias, targets = (each.detach() for each in some(40))
    exact = cross_entropy(hidden @ weight.t() + bias, targets, reduction="none")
    own = (hidden @ weight.t() + bias).gather(1, targets[:, None])[:, 0]
    sampled = SampledWords()
    sampled.choose(6, torch.arange(1, ENTRIES + 1))
    sums = torch.zeros_like(own)
    for draw in range(4000):
        sampled.generator.manual_seed(draw)
        sums += (sampled.loss(hidden, weight, bias, targets) + own).exp() / 4000
    assert torch.allclose(sums, (exact + own).exp(), rtol=0.1)
    sampled.choose(5000, torch.ones(ENTRIES))
    assert torch.allclose(sampled.loss(hidden, weight, bias, targets), exact, atol=1e-9)
