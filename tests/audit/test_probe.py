"""Faults that begin at a size, a token, a mode or a call: each is found, and honest networks are not accused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from audits import failed
from torch import Tensor, nn

from fairtrial.audit.probe import Text, random_batches
from fairtrial.audit.run import audit, audit_record
from fairtrial.audit.subject import Subject, plan_of_module, subject_of
from fairtrial.finding import PASS, REPORT
from fairtrial.record import Record

VOCABULARY, LENGTH, WIDTH, STOP = 600, 32, 16, 3
PROBES = ["V1", "V2", "V3", "T1"]


class Own(nn.Module):
    """One layer of causal attention, honest."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def mask(self, ids: Tensor) -> Tensor:
        return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril().repeat(len(ids), 1, 1)

    def body(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        scores = (self.q(x) @ self.k(x).transpose(1, 2) / 4).masked_fill(~self.mask(ids), -1e9)
        return x + scores.softmax(-1) @ self.v(x)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.body(ids))


class AheadAtStops(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in (ids[:, :-1] == STOP).nonzero().tolist():
            mask[row, place, place + 1] = True
        return mask


class BatchStatisticsFrom24Rows(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        return x - x.mean((0, 1), keepdim=True) if len(ids) >= 24 else x


class AheadInLongTextsOnce(Own):
    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        if ids.shape[1] > 28:
            mask[:, 20, 25] = True
        return mask


class AheadOfRareWords(Own):
    """Entries that a small vocabulary does not have."""

    def mask(self, ids: Tensor) -> Tensor:
        mask = super().mask(ids)
        for row, place in (ids[:, :-1] >= 500).nonzero().tolist():
            mask[row, place, place + 1] = True
        return mask


class CapacityFrom300Tokens(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if ids.numel() < 300:
            return x
        kept = torch.arange(ids.numel()).reshape(ids.shape) < 0.9 * ids.numel()
        return torch.where(kept[..., None], x, 0.5 * x)


class StateInEvaluation(Own):
    state: Any = 0.0

    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if not self.training:
            self.state = 0.9 * self.state + 0.1 * x.detach().mean()
        return x + 0.01 * self.state


class CoarseFrom64Rows(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        return x.bfloat16().to(x.dtype) if len(ids) >= 64 else x


class AheadInTrainingOnce(Own):
    def body(self, ids: Tensor) -> Tensor:
        x = super().body(ids)
        if self.training and ids.shape[1] > 17:
            x = torch.cat((x[:, :5], x[:, 5:6] + 0.1 * x[:, 17:18], x[:, 6:]), 1)
        return x


class LossOfOtherTargets(Own):
    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class BatchNormOfRunningStatistics(Own):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)

    def body(self, ids: Tensor) -> Tensor:
        return self.norm(super().body(ids).transpose(1, 2)).transpose(1, 2)


class LossWithOtherTerms(Own):
    def loss(self, ids: Tensor, mask: Tensor | None, targets: Tensor) -> Tensor:
        kept = targets >= 0
        decay = sum(weight.square().sum() for weight in self.parameters())
        return nn.functional.cross_entropy(self(ids)[kept], targets[kept]) + 1e-4 * decay


class ZeroHead(Own):
    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.out.weight)


class Convolution(Own):
    """A causal convolution by FFT."""

    def body(self, ids: Tensor) -> Tensor:
        x, size = self.tokens(ids), 2 * ids.shape[1]
        kernel = self.places.weight[: ids.shape[1]]
        spectrum = torch.fft.rfft(x, size, dim=1) * torch.fft.rfft(kernel, size, dim=0)
        return torch.fft.irfft(spectrum, size, dim=1)[:, : ids.shape[1]]


def asked(kind: Callable[[], nn.Module]) -> Subject:
    torch.manual_seed(0)
    declared = {"loss": "loss"} if hasattr(kind, "loss") else {}
    return subject_of(plan_of_module(kind(), "causal", {"vocabulary": VOCABULARY, "length": LENGTH}, declared))


FAULTS: list[tuple[type[Own], str]] = [
    (AheadAtStops, "V1"),
    (BatchStatisticsFrom24Rows, "V1"),
    (AheadInLongTextsOnce, "V2"),
    (AheadOfRareWords, "V1"),
    (CapacityFrom300Tokens, "V1"),
    (StateInEvaluation, "V1"),
    (CoarseFrom64Rows, "V1"),
    (AheadInTrainingOnce, "T1"),
    (LossOfOtherTargets, "V3"),
]


@pytest.mark.parametrize(("kind", "check"), FAULTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_fault_that_begins_somewhere_is_found(kind: type[Own], check: str) -> None:
    assert check in failed(audit(asked(kind), only=PROBES))


@pytest.mark.parametrize("kind", [Own, LossWithOtherTerms, ZeroHead, Convolution], ids=lambda each: each.__name__)
def test_an_honest_network_is_not_accused(kind: type[Own]) -> None:
    assert failed(audit(asked(kind), only=PROBES)) == {}


def test_batch_norm_is_told_and_does_not_block() -> None:
    findings = {each.id: each for each in audit(asked(BatchNormOfRunningStatistics), only=PROBES)}
    assert failed(list(findings.values())) == {}
    assert (findings["T1"].verdict, "running statistics" in findings["T1"].meaning) == (REPORT, True)


def test_the_sizes_that_were_asked_are_wide_and_told() -> None:
    subject = asked(Own)
    batches = list(random_batches(subject, "sizes", 0.5))
    counts = {len(rows) for rows in batches}
    assert {1, 32, 128} <= counts
    lengths = {len(row) for rows in batches for row in rows}
    assert {1, 32} <= lengths
    assert {token for rows in batches for row in rows for token in row.tolist()} >= {1, 2, 3, VOCABULARY - 1}
    (finding,) = audit(subject, only=["V1"])
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
        own = replace(built, text=Text(rows, (), (4, 8), frequencies))
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
    passport = audit_record(trained[task], only=["V1", "V5"])
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
