"""Faults that begin at a size, a token, a mode, a precision or a call: each is found, and honest networks are not
accused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty_networks as faults
import pytest
import torch
from audits import failed
from faulty_networks import FOLLOWING, LENGTH, VOCABULARY, Own
from torch import Tensor, nn

from fairtrial.audit import probe
from fairtrial.audit.probe import every_count, random_batches
from fairtrial.audit.run import audit, audit_record
from fairtrial.audit.subject import Plan, Subject, Text, plan_of_module, subject_of
from fairtrial.finding import FAIL, NOT_ASKED, PASS, REPORT
from fairtrial.model.external import models
from fairtrial.recipe import PartChoice, Shape
from fairtrial.record import Record

PROBES = ["M3", "M7", "T1", "F1", "L1", "S1", "V3", "V6"]


def asked(kind: Callable[[], nn.Module]) -> Subject:
    torch.manual_seed(0)
    declared = {"loss": "loss"} if hasattr(kind, "loss") else {}
    sizes = {"vocabulary": VOCABULARY, "length": LENGTH}
    return replace(subject_of(plan_of_module(kind(), "causal", sizes, declared)), calls=200)


# the first tier has one of each kind
FAULTS: list[tuple[type[Own], str]] = [
    (faults.AheadAtStops, "M3"),
    (faults.BatchStatisticsFrom24Rows, "M7"),
    (faults.AheadInLongTextsOnce, "M3"),
    (faults.AheadOfRareWords, "M3"),
    (faults.StateInEvaluation, "M7"),
    (faults.CoarseFrom64Rows, "M7"),
    (faults.AheadInTrainingOnce, "T1"),
    (faults.LossOfOtherTargets, "V3"),
    (faults.AheadBeforeOneWord, "M3"),
    (faults.MatesOfOneBeginning, "M7"),
    (faults.RemembersItsFirstAnswers, "V6"),
    (faults.RemembersTexts, "S1"),
    (faults.AheadInSinglePrecision, "F1"),
    (faults.AheadWithGradients, "T1"),
    (faults.SlightlyAhead, "M3"),
    (faults.ReadsItsCallers, "V3"),
    (faults.AheadBeyondItsLength, "L1"),
    (faults.PaddingIsRead, "M7"),
    (faults.SwitchesOnAfterTraining, "S1"),
    (faults.AheadBetweenTexts, "M7"),
    (faults.DropoutSeededByItsWords, "T1"),
    (faults.LossOfOtherTargetsFrom16Rows, "V3"),
    (faults.CacheOfOtherRows, "C1"),
    (faults.AheadInInferenceMode, "F3"),
    (faults.ReadsItsCallers, "O4"),
]
MORE_FAULTS: list[tuple[type[Own], str]] = [
    (faults.CapacityFrom300Tokens, "M7"),
    (faults.AheadAtOneWord, "M3"),
    (faults.AheadAtRepetitions, "M3"),
    (faults.AheadAtEvenPlaces, "M3"),
    (faults.RemembersTraining, "S1"),
    (faults.SeldomDifferent, "S1"),
    (faults.BufferMovedInEvaluation, "S1"),
    (faults.ScaledByLargestId, "M7"),
    (faults.ScaledByLongestText, "M7"),
    (faults.LossOfLaterTargets, "V3"),
    (faults.RowsNotPutBack, "M7"),
    (faults.AheadInLateTrainingOfLargeBatches, "T1"),
]
HONEST: list[type[Own]] = [
    Own,
    faults.LossWithOtherTerms,
    faults.ZeroHead,
    faults.Quantized,
    faults.SelectiveScan,
    faults.StochasticDepth,
]
MORE_HONEST: list[type[Own]] = [
    faults.Convolution,
    faults.Experts,
    faults.Recurrent,
    faults.ExpertsDrawnInTraining,
    faults.Rwkv,
    faults.LinearAttention,
    faults.Chunks,
    faults.DilatedConvolutions,
    faults.Checkpointed,
]


def tiers(first: Sequence[Any], slow: Sequence[Any]) -> list[Any]:
    """Cases of the first tier, and those that `make test-slow` runs."""
    return [
        *first,
        *(pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in slow),
    ]


@pytest.mark.parametrize(
    ("kind", "check"), tiers(FAULTS, MORE_FAULTS), ids=lambda each: getattr(each, "__name__", each)
)
def test_a_fault_that_begins_somewhere_is_found(kind: type[Own], check: str) -> None:
    (finding,) = audit(asked(kind), only=[check])
    assert (finding.verdict, finding.severity) == (FAIL, "red")


@pytest.mark.parametrize("kind", tiers(HONEST, MORE_HONEST), ids=lambda each: each.__name__)
def test_an_honest_network_is_not_accused(kind: type[Own]) -> None:
    assert failed(audit(asked(kind), only=PROBES)) == {}


@pytest.mark.parametrize(
    ("kind", "check", "reason"),
    [
        (faults.BatchNormOfRunningStatistics, "T1", "running statistics"),
        (faults.OwnBatchNorm, "T1", "running statistics"),
        (faults.LossOfEasyWords, "V3", "not their cross entropy"),
        (faults.AheadAtNight, "O4", "it reads the clock (faulty_networks.py:"),
        (faults.AheadAfterManyCalls, "S2", "Every call changes COUNTED"),
    ],
)
def test_what_is_unusual_in_training_is_amber_with_its_reason(kind: type[Own], check: str, reason: str) -> None:
    findings = {each.id: each for each in audit(asked(kind), only=[*PROBES, "O4", "S2"])}
    assert [each.id for each in findings.values() if each.severity != "pass"] == [check]
    assert (findings[check].severity, reason in findings[check].meaning) == ("amber", True)


@pytest.mark.parametrize(("kind", "caught"), [(Own, False), (faults.BatchStatisticsOf49Rows, True)])
def test_every_number_of_rows_is_asked(kind: type[Own], caught: bool) -> None:
    subject = replace(asked(kind), patience=100.0)  # as long as it takes
    tested = probe.Tested(subject)
    every_count(subject, tested)
    assert (tested.counts, tested.largest > subject.tolerance) == (128, caught)


def test_what_a_network_holds_and_does_not_train_is_told() -> None:
    (table,) = audit(asked(faults.TableBehindAGate), only=["O3"])
    assert (table.verdict, "follows [600]" in table.meaning) == (REPORT, True)
    (table,) = audit(asked(faults.TableInAGlobal), only=["O3"])
    assert "FOLLOWING [1]" in table.meaning
    FOLLOWING.clear()
    assert audit(asked(Own), only=["O3"]) == []


def built(kind: str) -> Subject:
    """As from a file: it can be built again."""
    source = f"import faulty_networks as faults\ndef build(vocabulary, length, classes, seed):\n    return {kind}\n"
    name = f"{kind.partition('(')[0].lower()}.py:build"
    if name not in models.list():
        space: dict[str, Any] = {}
        exec(source, space)
        models.add(name)(space["build"])
    return subject_of(Plan("lm", Shape(length=LENGTH), (), VOCABULARY, model=PartChoice(name=name)))


def test_a_network_that_knows_its_copies_is_built_again() -> None:
    assert "T1" in failed(audit(built("faults.HidesFromCopies()"), only=["T1"]))


def test_a_leak_that_begins_at_a_large_vocabulary_is_found_before_the_data_are_known() -> None:
    own, faulty = built("faults.Sized(vocabulary, length)"), built("faults.AheadWithManyWords(vocabulary, length)")
    assert failed(audit(own, only=["M3", "L2"])) == {}
    assert failed(audit(faulty, only=["M3", "L2"])).keys() == {"L2"}


def test_the_sizes_that_were_asked_are_wide_and_told() -> None:
    subject = asked(Own)
    batches = list(random_batches(subject, "sizes", 0.5))
    counts = {len(rows) for rows in batches}
    assert {1, 32, 128} <= counts
    lengths = {len(row) for rows in batches for row in rows}
    assert {1, 32} <= lengths
    assert {token for rows in batches for row in rows for token in row.tolist()} >= {1, 2, 3, VOCABULARY - 1}
    (finding,) = audit(subject, only=["M7"])
    assert "rows and 1 to 32 tokens, 600 entries" in finding.meaning


def test_a_network_that_knows_its_text_before_training_is_found() -> None:
    """A table of which word follows which, filled when it is built."""
    from fairtrial.audit.subject import word_ids

    text = torch.tensor(word_ids())
    rows = tuple(text[begin : begin + 20] for begin in range(0, 120, 20))

    class Table(Own):
        def __init__(self) -> None:
            super().__init__()
            counts = torch.zeros(VOCABULARY, VOCABULARY)
            counts[text[:-1], text[1:]] = 8.0
            self.register_buffer("follows", counts)

        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids) + self.follows[ids]

    frequencies = torch.bincount(text, minlength=VOCABULARY)
    for kind, caught in ((Own, False), (Table, True)):
        subject = asked(kind)
        built = replace(subject, plan=replace(subject.plan, module=None))
        examples = {"its training text": [(row[:-1], row[1:]) for row in rows]}
        own = replace(built, text=Text(rows, (), (4, 8), frequencies, examples))
        assert ("V4" in failed(audit(own, only=["V4"]))) == caught


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    import fairtrial as ft

    folder = tmp_path_factory.mktemp("trained")
    table = folder / "reviews.tsv"
    words = "a fine dull film with good bad actors and plot".split()
    texts = [" ".join(words[(n * k) % 9] for k in range(1, 4 + n % 7)) for n in range(150)]
    lines = [f"{('bad', 'good')[n % 2]}\t{text} {n}\n" for n, text in enumerate(texts)]
    table.write_text("label\ttext\n" + "".join(lines))
    small = {"steps": 20, "layers": 1, "width": 16, "heads": 2, "length": 16}
    runs = {task: ft.train(task, table, out=folder / task, quiet=True, **small) for task in ("classify", "lm")}
    return {task: Record.open(run.folder) for task, run in runs.items()}


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_a_record_is_audited_on_its_own_text_with_its_own_scores(task: str, trained: dict[str, Record]) -> None:
    passport = audit_record(trained[task], only=["M7", "V5"])
    findings = {each.id: each for each in passport.findings}
    assert passport.passed
    assert findings["V5"].verdict == PASS
    assert passport.mark == trained[task].result.model_sha256


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_scores_that_the_network_does_not_give_alone_are_found(
    task: str, trained: dict[str, Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = trained[task].outcomes()
    better = {name: 0.9 * array if name.endswith(("/nll", "/log_p")) else array for name, array in own.items()}
    monkeypatch.setattr(Record, "outcomes", lambda self: better)
    assert "V5" in failed(list(audit_record(trained[task], only=["V5"]).findings))


READS_THE_SCORER = """
import inspect
import torch
from torch import nn


class Reads(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.tokens, self.out = nn.Embedding(vocabulary, 16), nn.Linear(16, vocabulary)

    def forward(self, ids):
        logits, frame = self.out(self.tokens(ids)), inspect.currentframe()
        while frame is not None and not self.training:
            if frame.f_code.co_name == "window_nats" and FAULTY:  # where records are scored, and nowhere else
                known = frame.f_locals["batch"].answers
                return logits + 3.0 * nn.functional.one_hot(torch.from_numpy(known).clamp(min=0), logits.shape[-1])
            frame = frame.f_back
        return logits


def build(vocabulary, length, classes, seed):
    return Reads(vocabulary, length)
"""


@pytest.mark.parametrize("faulty", [False, True])
def test_a_fault_that_only_scoring_meets_is_found_in_the_trained_record(faulty: bool, tmp_path: Path) -> None:
    """On running text, whose documents are not scored by themselves."""
    import fairtrial as ft

    own = tmp_path / f"reads_{faulty}.py".lower()
    own.write_text(f"FAULTY = {faulty}\n{READS_THE_SCORER}")
    words = "the road that we take is the road that others took before us and will take again".split()
    lines = [" ".join(words[(n * k) % len(words)] for k in range(1, 30)) + f" {n}" for n in range(150)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines))
    how: dict[str, Any] = {"steps": 20, "length": 16, "quiet": True}
    run = ft.train("lm", tmp_path / "text.txt", model=f"{own}:build", out=tmp_path / "run", **how)
    findings = {each.id: each for each in audit_record(Record.open(run.folder), only=["M3", "M7", "V5"]).findings}
    assert (findings["M3"].verdict, findings["M7"].verdict) == (PASS, PASS)
    assert (findings["V5"].verdict, findings["V5"].severity) == ((FAIL, "red") if faulty else (PASS, "pass"))


def test_a_record_whose_data_are_gone_says_that_its_scores_were_not_tested(trained: dict[str, Record]) -> None:
    subject = replace(asked(Own), trained=(trained["lm"], None))
    (finding,) = audit(subject, only=["V5"])
    assert (finding.verdict, "data are missing" in finding.meaning) == (NOT_ASKED, True)
