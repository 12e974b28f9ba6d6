"""Is attention in use? Networks with and without it, the line of `show`, and what a verdict makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import fairtrial as ft
from fairtrial.prepare import prepare
from fairtrial.record import Record
from fairtrial.results.records import attention_words
from fairtrial.results.values import ReasonCode, VerdictKind
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_study
from fairtrial.stored import AttentionUse, ChangedLoss
from fairtrial.study.artifacts import attention_is_used, concerns_attention
from fairtrial.training import attention_use as module
from fairtrial.training.attention_use import attention_use

NOTHING, MUCH = ChangedLoss(0.0, 0.001), ChangedLoss(0.2, 0.01)
PARTS = ("learned", "rope")


def use(uniform: ChangedLoss, shuffled: ChangedLoss) -> AttentionUse:
    return AttentionUse(parts=PARTS, heads_changed=(0.04, 0.6), uniform=uniform, removed=uniform, shuffled=shuffled)


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_a_network_that_ignores_its_attention_does_not_use_it(
    task: str, finished_records: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEWEST", 2)
    prepared = prepare(Record.open(finished_records[task]).recipe, 0)
    network = prepared.task.network
    initial = prepare(Record.open(finished_records[task]).recipe, 0).task.network
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "attention" in name:
                parameter.mul_(0.0)  # nothing comes out of it
            elif "position" in name or name.startswith("body.parts"):
                parameter.mul_(0.0)  # nor is order seen
    found = attention_use(prepared.task, initial, 0)
    assert found is not None
    assert (found.uniform.mean, found.removed.mean) == (0.0, 0.0)
    assert not found.used or task == "lm"  # a language model may see the last words' places without attention
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "attention" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    loud = attention_use(prepared.task, initial, 0)
    assert loud is not None
    assert loud.uniform.mean != 0.0
    assert loud.removed.mean != 0.0
    assert max(loud.heads_changed) > 0.01


def test_what_is_uncertain_counts_as_used() -> None:
    assert not use(NOTHING, NOTHING).used
    assert use(MUCH, NOTHING).used
    assert use(NOTHING, MUCH).used
    assert use(ChangedLoss(0.0, 0.02), NOTHING).used


def test_show_says_it_in_one_line(finished_records: dict[str, Path]) -> None:
    assert attention_words(use(MUCH, NOTHING)) == (
        "used: without it +0.200 nats, with uniform weights +0.200 nats, words shuffled +0.000 nats;"
        " heads moved 4% to 60%"
    )
    assert attention_words(use(NOTHING, NOTHING)).startswith("not used: ")
    record = Record.open(finished_records["lm"])
    shown = str(ft.show(record.folder))
    assert ("not used: " in shown or "used: without it" in shown) == (record.result.attention is not None)


def outcomes(idle: tuple[str, ...], about: tuple[str, ...]) -> TaskOutcomes:
    rng = np.random.default_rng(0)

    def scored(shift: float) -> dict[str, SetOutcomes]:
        nats = 400 + shift + rng.normal(0, 1, (5, 1)) + rng.normal(0, 1, (5, 60))
        tokens = np.full((5, 60), 100.0)
        arrays = {"nll": nats, "tokens": tokens, "bytes": 5 * tokens, "unknown": 0 * tokens}
        return {"test": SetOutcomes((0, 1, 2, 3, 4), arrays)}

    variants = {"learned": scored(0), "rope": scored(-30)}
    return TaskOutcomes(
        task="lm", baseline="learned", least_difference=0.01, variants=variants, idle=idle, about_attention=about
    )


def test_two_models_without_attention_are_not_comparable_about_attention() -> None:
    (comparison,) = judge_study("x", {"lm": outcomes(("learned", "rope"), ("rope",))}).comparisons
    assert comparison.verdict == VerdictKind.NOT_COMPARABLE
    assert [reason.code for reason in comparison.reasons] == [ReasonCode.ATTENTION_UNUSED]
    assert "attention is not used by these models" in comparison.sentence


def test_where_one_side_uses_it_the_verdict_stands_and_says_so() -> None:
    verdict = judge_study("x", {"lm": outcomes(("learned",), ("rope",))})
    assert verdict.comparisons[0].verdict == VerdictKind.BETTER
    told = "learned did not use attention: with uniform weights or shuffled words, scores are as good."
    assert told in [each.text for each in verdict.sentences if each.limit]


def test_ideas_outside_attention_are_exempt() -> None:
    verdict = judge_study("x", {"lm": outcomes(("learned", "rope"), ())})
    assert verdict.comparisons[0].verdict == VerdictKind.BETTER
    assert not any("Attention" in text for text in verdict.text)
    assert verdict.tasks["lm"].attention_unused == ()


def test_what_concerns_attention_is_told_by_the_parts_that_differ(finished_records: dict[str, Path]) -> None:
    record = Record.open(finished_records["lm"])

    class Made:
        def __init__(self, parts: tuple[str, ...], attention: AttentionUse) -> None:
            choices = tuple(ft.Recipe().with_(parts=list(parts)).parts)
            self.recipe = replace(record.recipe, parts=choices)
            self.result = replace(record.result, attention=attention)

    def made(*parts: str, attention: AttentionUse) -> dict[int, Record]:
        return {0: Made(parts, attention)}  # type: ignore[dict-item]

    learned = made("learned", attention=use(MUCH, MUCH))
    assert concerns_attention(made("rope", attention=use(MUCH, MUCH)), learned)
    assert concerns_attention(made(attention=use(MUCH, MUCH)), learned)  # positions left out
    assert not concerns_attention(made("learned", "swiglu", attention=use(MUCH, MUCH)), learned)
    assert attention_is_used(learned.values())
    assert not attention_is_used(made("rope", attention=use(NOTHING, NOTHING)).values())
