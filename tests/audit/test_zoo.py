"""Every cheat is caught by the check that is there for it, and what is harmless passes."""

from __future__ import annotations

import re
from collections.abc import Callable

import cheats_claiming
import cheats_seeing
import pytest
from audits import HONEST, UNTRAINED, failed, small_plan, small_subject
from cheats import ZOO

from fairtrial.audit.determinism import RepeatedRuns
from fairtrial.audit.run import audit, audit_plans
from fairtrial.audit.subject import subject_of
from fairtrial.finding import PASS, REPORT
from fairtrial.model.part import Part, parts

Know = Callable[[type[Part]], str]


@pytest.mark.parametrize("kind", dict.fromkeys(case.kind for case in ZOO), ids=lambda kind: kind.__name__)
def test_a_cheat_is_caught_by_the_checks_that_are_there_for_it(kind: type[Part], known: Know) -> None:
    for case in (case for case in ZOO if case.kind is kind):
        subject = small_subject(case.task, known(kind))
        assert case.caught_by <= failed(audit(subject, only=sorted(case.caught_by))).keys(), case.task


def test_the_zoo_is_large_enough_and_every_cheat_has_a_sentence() -> None:
    kinds = {case.kind for case in ZOO}
    assert len(kinds) >= 25
    assert all(kind.__doc__ for kind in kinds)


@pytest.mark.parametrize(  # a quarter of them at once, the others in the second tier
    "name", [name if n % 4 == 0 else pytest.param(name, marks=pytest.mark.second) for n, name in enumerate(HONEST)]
)
def test_an_honest_part_passes_every_check(name: str) -> None:
    trained, other = ("classify", "lm") if HONEST.index(name) % 2 else ("lm", "classify")
    if parts.find(name).decoder_only:
        trained, other = "lm", "lm"
    assert failed(audit(small_subject(trained, name))) == {}
    assert failed(audit(small_subject(other, name), only=UNTRAINED)) == {}


def test_the_reports_reweighting_is_caught() -> None:
    for over in ("batch", "row"):
        in_decoder = failed(audit(small_subject("lm", "reweight", over=over), only=UNTRAINED))
        assert {"M3", "M4", "M7"} <= in_decoder.keys()
        assert "future" in in_decoder["M3"]
        in_encoder = failed(audit(small_subject("classify", "reweight", over=over), only=UNTRAINED))
        assert re.search("padding|other texts", in_encoder["M7"])


def test_a_rotary_that_turns_by_content_is_named_for_what_it_lacks(known: Know) -> None:
    found = failed(audit(small_subject("classify", known(cheats_claiming.ContentRotary)), only=["M8", "M9"]))
    assert "declares that it sees word order" in found["M8"]
    assert "every distance" in found["M9"]


def test_a_detached_future_passes_the_gradient_and_fails_the_changed_words(known: Know) -> None:
    """Which is why there are both checks."""
    found = failed(audit(small_subject("lm", known(cheats_seeing.DetachedFuture)), only=["M3", "M4"]))
    assert found.keys() == {"M3"}


def test_a_gate_that_starts_shut_is_not_found_without_perturbed_weights(known: Know) -> None:
    from dataclasses import replace

    subject = small_subject("lm", known(cheats_seeing.ShutGate))
    still = replace(subject, network=subject.fresh)
    assert failed(audit(still, only=["M3", "M4"])) == {}
    assert failed(audit(subject, only=["M3", "M4"])).keys() == {"M3", "M4"}


def test_a_score_cannot_undo_a_mask(known: Know) -> None:
    assert failed(audit(small_subject("lm", known(cheats_claiming.Unmasked)), only=UNTRAINED)) == {}


def test_a_part_that_raises_fails_with_the_first_line_of_its_message(known: Know) -> None:
    found = failed(audit(small_subject("lm", known(cheats_claiming.Breaks)), only=["M1", "M3", "R3"]))
    assert found.keys() == {"M1", "M3", "R3"}
    assert found == {
        "M1": "It raises ValueError: no such luck",
        "M3": "It fails for the same reason as M1.",
        "R3": "It fails for the same reason as M1.",
    }


@pytest.mark.second
def test_hashes_that_differ_from_process_to_process_are_caught_in_fresh_ones_only(known: Know) -> None:
    plan = small_plan("classify", known(cheats_claiming.HashOfWord))
    subject = subject_of(plan)
    with RepeatedRuns([plan]) as runs:
        assert failed(audit(subject, runs, only=["R1"])).keys() == {"R1"}
    assert failed(audit(subject, only=["R1"])) == {}


def test_a_part_that_cannot_be_built_is_a_finding(known: Know) -> None:
    (findings,) = audit_plans([small_plan("lm", known(cheats_claiming.BreaksAtOnce))])
    assert failed(findings) == {"B1": "It raises ZeroDivisionError: no shape will do"}


def test_a_model_without_positions_is_reported_and_does_not_fail() -> None:
    for task, sees in (("classify", False), ("lm", True)):
        (finding,) = audit(small_subject(task, "none"), only=["M8"])
        assert (finding.verdict, finding.level) == (REPORT, "amber")
        assert (finding.value > 1e-6) == sees
        assert ("bag of words" in finding.meaning) != sees


def test_a_window_wider_than_the_text_is_reported_and_a_narrow_one_is_tested() -> None:
    (wide,) = audit(small_subject("classify", "window", size=40), only=["M8"])
    (narrow,) = audit(small_subject("classify", "window", size=4), only=["M8"])
    assert (wide.verdict, narrow.verdict) == (REPORT, PASS)
