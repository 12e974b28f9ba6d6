"""The passport of networks that are not ours: an honest one passes, each fault is found under its condition."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from audits import failed
from own_models import CHEATS, Cheat, Own
from torch import Tensor, nn

import fairtrial as ft
from fairtrial.audit import conditions
from fairtrial.audit.run import CHECKS, audit, audit_plan
from fairtrial.audit.subject import Subject, perturb_weights, plan_of_module, subject_of
from fairtrial.errors import BadInput
from fairtrial.finding import FAIL, NOT_ASKED, OUT_OF_TIME, PASS, REPORT, UNTESTABLE, summary, worst
from fairtrial.progress import TimeLimit

SIZES = {"vocabulary": 40, "length": 20, "classes": 3}


def subject(module: nn.Module, kind: str = "causal", calls: int = 20) -> Subject:
    return replace(subject_of(plan_of_module(module, kind, SIZES, {})), bf16=True, calls=calls)


def test_an_honest_network_that_offers_all_is_asked_all_and_passes() -> None:
    torch.manual_seed(0)
    findings = audit(subject(Own(40, 20, 0, 0)))
    assert failed(findings) == {}
    assert {each.id for each in findings if each.verdict == NOT_ASKED} == {"M11", "M14", "E1", "V4"}
    assert {"M1", "M2", "M4", "C1", "C1p", "C2", "K1", "K2", "T1", "F1", "F2", "L1", "S1", "R1", "R2"} <= {
        each.id for each in findings if each.verdict != NOT_ASKED
    }


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.kind.__name__)
def test_a_fault_is_found_under_its_condition_and_by_no_other_check(cheat: Cheat) -> None:
    torch.manual_seed(0)
    others = {each.caught_by for each in CHEATS} | {"M3", "M7", "C1"}
    calls = 1600 if cheat.caught_by == "S1" else 20
    found = failed(audit(subject(cheat.kind(40, 20, 0, 0), calls=calls), only=sorted(others)))
    in_float32, many_calls = {"T1"}, {"M7", "T1", "F1", "F2"}  # which ask under the same condition
    also = {"F1": in_float32, "S1": many_calls}.get(cheat.caught_by, set())
    assert cheat.caught_by in found
    assert found.keys() <= {cheat.caught_by, *also}


def test_a_map_may_hold_anything_in_the_rows_of_padding() -> None:
    class Undefined(Own):
        def forward(self, ids: Tensor, mask: Tensor | None = None, **more: Any) -> Any:
            found = super().forward(ids, mask, **more)
            if found.attentions and mask is not None:
                found.attentions = (found.attentions[0].masked_fill(~mask[:, None, :, None], torch.nan),)
            return found

    assert failed(audit(subject(Undefined(40, 20, 0, 0)), only=["M1", "M2", "M10"])) == {}


def test_what_is_frozen_is_not_moved_and_has_nothing_to_learn() -> None:
    network = Own(40, 20, 0, 0)
    network.table = nn.Parameter(torch.arange(20.0), requires_grad=False)  # of positions, as sinusoids are
    assert failed(audit(subject(network), only=["M14g"])) == {}
    tokens = network.tokens.weight.detach().clone()
    perturb_weights(network, 0)
    assert torch.equal(network.table, torch.arange(20.0))
    assert not torch.equal(network.tokens.weight, tokens)


def test_a_cache_that_cannot_be_tested_is_said_and_the_audit_is_no_plain_pass() -> None:
    class Takes(Own):
        def forward(self, ids: Tensor, mask: Tensor | None = None, cache: Any = None, **more: Any) -> Any:
            found = super().forward(ids, mask, cache=cache, **more)
            found.cache = cache
            return found

    findings = audit(subject(Takes(40, 20, 0, 0)), only=["C1", "C1p", "C2", "L1"])
    verdicts = {"C1": UNTESTABLE, "C1p": NOT_ASKED, "C2": NOT_ASKED, "L1": PASS}
    assert {each.id: each.verdict for each in findings} == verdicts
    assert (worst(findings), summary(findings)) == ("amber", "NOT FULLY TESTED: C1 cache changes predictions")


def test_a_network_that_counts_by_what_it_is_given_is_told_where_its_tokens_stand_in_the_cache() -> None:
    class Counts(Own):
        def forward(
            self, ids: Tensor, mask: Tensor | None = None, cache: Any = None, cache_position: Any = None, **more: Any
        ) -> Any:
            if cache is not None and cache_position is None:
                raise ValueError("cache_position has to be given with a cache")
            assert cache_position is None or cache_position.tolist()[-1] + 1 == ids.shape[1] + (
                0 if cache is None else cache[0].shape[1]
            )
            return super().forward(ids, mask, cache=cache, **more)

    assert failed(audit(subject(Counts(40, 20, 0, 0)), only=["C1", "C1p", "C2"])) == {}


class Bag(nn.Module):
    """A classifier that takes no mask and says nothing of itself."""

    def __init__(self, entries: int = 40, classes: int = 3) -> None:
        super().__init__()
        self.tokens, self.out = nn.Embedding(entries, 8), nn.Linear(8, classes)

    def forward(self, ids: Tensor) -> tuple[None, Tensor]:
        return None, self.out(self.tokens(ids).mean(1))


def test_what_a_network_does_not_offer_is_not_asked_and_never_passed() -> None:
    audited = ft.audit(Bag(), kind="classifier", length=6)
    verdicts = {each.id: each.verdict for each in audited.findings}
    assert audited.passed
    assert [id for id in ("M1", "M2", "K1", "K2") if verdicts[id] != NOT_ASKED] == []
    assert verdicts["M7"] == PASS
    assert "not tested: M1, M2" in summary(audited.findings)
    assert verdicts.keys() <= {check.id for check in CHECKS}


def test_a_network_that_breaks_the_contract_is_told_what_was_called_and_what_came_back() -> None:
    class Last(Own):
        def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
            return super().forward(ids, mask).logits[:, [-1]]

    with pytest.raises(BadInput, match=r"Last: model\(ids \[1, 20\]\) gives tensor \[1, 1, 40\], and no logits") as bad:
        ft.audit(Last(40, 20, 0, 0), kind="causal", length=20, maps=False)
    assert "[1, 20, 40]" in bad.value.hint
    with pytest.raises(BadInput, match="cannot declare 'pad_side'; did you mean"):
        ft.audit(Own(40, 20, 0, 0), kind="causal", pad_side="left")


def test_windows_that_no_text_crosses_are_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Own(40, 20, 0, 0)
    monkeypatch.setattr(conditions, "LONGEST", 64)
    for chunk, verdict in ((21, PASS), (22, NOT_ASKED)):
        plan = plan_of_module(module, "causal", SIZES, {"chunk": chunk})
        (finding,) = audit(subject_of(plan), only=["L1"])
        assert finding.verdict == verdict
    assert finding.meaning.startswith("Over 64 tokens predictions depend only on what they may see")
    assert "windows of 22 are not crossed" in finding.meaning


def test_windows_are_found_in_a_configuration() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 40, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    for window in (4096, 6):
        config = transformers.MistralConfig(**sizes, **heads, sliding_window=window)
        plan = plan_of_module(transformers.MistralForCausalLM(config), "causal", SIZES, {})
        assert plan.declared.chunk == window


class Hanging(Own):
    """Once it is asked in training mode; then its time is over."""

    limit: ClassVar = TimeLimit(3)
    limit.until += 3600  # however slow the machine is, it gets that far

    def changed(self, x: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        if self.training:
            self.limit.until = 0.0
            signal.setitimer(signal.ITIMER_REAL, 0.1)
        while self.training:
            time.sleep(0.01)
        return x


def test_a_network_that_hangs_is_asked_what_there_is_time_for_and_has_not_passed() -> None:
    findings = audit(subject(Hanging(40, 20, 0, 0)), only=["M3", "M7", "T1", "F1", "S1"], limit=Hanging.limit)
    assert [each.verdict for each in findings] == [PASS, PASS, *[OUT_OF_TIME] * 3]
    assert findings[2].meaning == "Out of time: it did not end within 3 s."
    assert findings[3].meaning == "Out of time: 3 s ended before it started."
    assert summary(findings) == "NOT FINISHED: out of time before T1, F1, S1. So far PASS: 2 checks"
    assert not ft.Audit("it", tuple(findings)).passed


def test_a_network_that_hangs_while_it_is_built_ends_in_its_time() -> None:
    class Never(Own):
        def __deepcopy__(self, memo: Any) -> Any:
            while True:
                time.sleep(0.01)

    findings = audit_plan(plan_of_module(Never(40, 20, 0, 0), "causal", SIZES, {}), limit=TimeLimit(0.2))
    assert {each.verdict for each in findings} == {OUT_OF_TIME}
    assert "was not built" in findings[0].meaning
    assert {each.id for each in findings} == {check.id for check in CHECKS}


class Stepping(nn.Module):
    """A decoder by a recurrent state, whose output and arguments are named in one of several ways."""

    def __init__(self, wrap: Callable[[Tensor, Tensor], Any], scale: float = 1.0) -> None:
        super().__init__()
        self.tokens, self.cell, self.out = nn.Embedding(40, 12), nn.GRU(12, 12, batch_first=True), nn.Linear(12, 40)
        self.wrap, self.scale = wrap, scale

    def step(self, ids: Tensor, state: Tensor | None) -> Any:
        found, last = self.cell(self.tokens(ids), state)
        return self.wrap(self.out(found), self.scale * last)


class WithState(Stepping):
    def forward(self, ids: Tensor, state: Tensor | None = None) -> Any:
        return self.step(ids, state)


class WithCache(Stepping):
    def forward(self, ids: Tensor, kv_cache: Tensor | None = None) -> Any:
        return self.step(ids, kv_cache)


class WithPast(Stepping):
    def forward(self, ids: Tensor, past_key_values: Tensor | None = None) -> Any:
        return self.step(ids, past_key_values)


@dataclass
class Output:
    hidden: Tensor
    state: Tensor


WAYS: list[tuple[type[Stepping], Callable[[Tensor, Tensor], Any]]] = [
    (WithState, lambda logits, state: {"state": state, "logits": logits}),
    (WithCache, lambda logits, state: {"out": logits, "kv_cache": state}),
    (WithPast, lambda logits, state: (logits, state)),
    (WithState, lambda logits, state: Output(logits, state)),
    (WithCache, lambda logits, state: SimpleNamespace(logits=logits, new_cache=state)),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_caches_are_found_in_arguments_and_outputs_by_their_usual_names(number: int) -> None:
    kind, wrap = WAYS[number]
    for scale, verdict in ((1.0, PASS), (0.5, FAIL)):
        torch.manual_seed(0)
        (finding,) = audit(subject(kind(wrap, scale)), only=["C1"])
        assert finding.verdict == verdict


def test_left_padding_is_tried_where_a_mask_is_taken_and_the_side_is_told_as_assumed() -> None:
    module = Own(40, 20, 0, 0)
    plan = plan_of_module(module, "causal", SIZES, {})
    (finding,) = audit(subject_of(replace(plan, declared=replace(plan.declared, pads=""))), only=["K2"])
    assert finding.meaning.startswith("Padding side: right (assumed). Padding before a text")
    assert finding.severity == "pass"


def test_own_training_code_is_disclosed() -> None:
    class Brings(Own):
        def __init__(self) -> None:
            super().__init__(40, 20, 0, 0)
            self.register_buffer("counts", torch.rand(40, 40))
            self.register_buffer("angles", torch.rand(20, 8))

        def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
            return nn.functional.cross_entropy(self(ids, mask).logits.flatten(0, 1), targets.flatten(), ignore_index=-1)

        def optimizer(self, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), learning_rate)

    plan = plan_of_module(Brings(), "causal", SIZES, {"loss": "loss", "optimizer": "optimizer"})
    findings = audit(subject_of(plan), only=["O1", "O2", "O3"])
    assert [(each.id, each.verdict) for each in findings] == [("O1", REPORT), ("O2", REPORT), ("O3", REPORT)]
    assert "counts [40, 40])" in findings[2].meaning
    plain = plan_of_module(Own(40, 20, 0, 0), "causal", SIZES, {})
    assert audit(subject_of(plain), only=["O1", "O2", "O3"]) == []
