"""Random questions to a network on its own text, so that no fault can hide below a size: batches of 1 to 128 rows,
texts of 1 token to the longest, every entry of the real vocabulary, reserved tokens anywhere in a row, every cut of a
row, the batch sizes of training and of scoring, evaluation and training mode, and the scores that a record reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fairtrial.audit.conditions import TrainingMode
from fairtrial.audit.subject import RESERVED, Subject, as_batch, generator, largest_change
from fairtrial.finding import Measured, at_most
from fairtrial.prepare import Prepared
from fairtrial.record import Record
from fairtrial.training.loop import put_weights
from fairtrial.training.scoring import ROWS, TOKENS, TokenSet

MOST_ROWS = 128
MOST_VALUES = 2**24  # log-probabilities of one batch, so that memory stays small
SECONDS = 0.4  # of processor time for each check; a thorough audit takes twenty times as long
ASKED_ALONE = 6  # rows of a batch that are asked once more by themselves
SCORED_ALONE = 12  # items of a record whose scores are computed once more
FEWEST = 3  # random batches, whatever the time
Answer = Callable[[Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Text:
    """What a network reads in training and scoring: rows with their reserved tokens, and how many at once."""

    rows: tuple[Tensor, ...] = field(repr=False)  # token ids [time]
    reserved: tuple[int, ...]  # entries of the vocabulary that are no words
    batches: tuple[int, ...]  # rows at once, in training and in scoring
    frequencies: Tensor | None = field(default=None, repr=False)  # of the targets [entry or class]

    @classmethod
    def of(cls, prepared: Prepared) -> Text:
        task, tokenizer = prepared.task, prepared.tokenizer
        rows: list[Tensor] = []
        answers: list[np.ndarray] = []
        for index in range(max(2, min(8, -(-2 * MOST_ROWS // prepared.recipe.training.batch)))):
            batch = task.batches.batch(index)
            lengths = batch.lengths if batch.lengths is not None else np.full(len(batch.ids), batch.ids.shape[1])
            rows += [
                torch.from_numpy(row[:size].astype(np.int64)) for row, size in zip(batch.ids, lengths, strict=True)
            ]
            answers.append(batch.answers[batch.answers >= 0])
        special = (tokenizer.pad, tokenizer.unknown, tokenizer.start, tokenizer.stop, tokenizer.mask)
        sizes = len(prepared.splits.labels) if prepared.recipe.task == "classify" else tokenizer.size
        counts = np.bincount(np.concatenate(answers).ravel().astype(int), minlength=sizes)
        scored = ROWS if prepared.recipe.task == "classify" else max(1, TOKENS // prepared.recipe.shape.length)
        reserved = tuple(dict.fromkeys(each for each in special if each is not None))
        return cls(tuple(rows), reserved, (prepared.recipe.training.batch, scored), torch.from_numpy(counts))


def text_of(subject: Subject) -> Text:
    """The subject's own text; where none is known, its sample rows."""
    if isinstance(subject.text, Text):
        return subject.text
    first = 0 if subject.pad is None else 1
    return Text(subject.rows, tuple(range(first, min(RESERVED, subject.plan.vocabulary))), (32, ROWS))


@dataclass
class Tested:
    """The ranges that were asked about, which the finding tells."""

    batches: int = 0
    rows: tuple[int, int] = (MOST_ROWS, 0)
    lengths: tuple[int, int] = (10**9, 0)
    vocabulary: int = 0
    worst: dict[str, float] = field(default_factory=dict)

    def note(self, rows: Sequence[Tensor]) -> None:
        self.batches += 1
        self.rows = min(self.rows[0], len(rows)), max(self.rows[1], len(rows))
        sizes = [len(row) for row in rows]
        self.lengths = min(self.lengths[0], *sizes), max(self.lengths[1], *sizes)

    def change(self, fault: str, before: Sequence[Tensor], after: Sequence[Tensor]) -> None:
        self.worst[fault] = max(self.worst.get(fault, 0.0), largest_change(before, after))

    def judged(self, limit: float, where: str) -> Measured:
        ranges = (
            f"{self.batches} random batches of {self.rows[0]} to {self.rows[1]} rows and {self.lengths[0]} to"
            f" {self.lengths[1]} tokens, {self.vocabulary:,} entries"
        )
        fault = max(self.worst, key=lambda name: self.worst[name] if self.worst[name] == self.worst[name] else math.inf)
        value = self.worst[fault]
        good = f"{where}predictions depend on nothing that they may not see ({ranges})."
        return at_most(
            value, limit, good, f"{where}predictions depend on {fault}, by up to {value:.2g} nats ({ranges})."
        )


def random_batches(subject: Subject, use: str, seconds: float) -> Iterator[list[Tensor]]:
    """Batches of rows, until the time is over: first those of training and scoring and the largest, then any."""
    text, rng = text_of(subject), generator(subject.plan.seed, "probe", use)
    vocabulary, longest = subject.plan.vocabulary, min(subject.plan.shape.length, max(map(len, text.rows)))
    shortest = 1 if subject.external is None else max(1, subject.external.declared.shortest)
    entries = vocabulary if subject.causal else subject.plan.classes * 64
    sizes = [*text.batches, MOST_ROWS, 1]
    started, made = time.process_time(), 0
    while made < FEWEST or time.process_time() - started < seconds:
        drawn = float(torch.rand((), generator=rng))
        count = sizes[made] if made < len(sizes) else round(MOST_ROWS**drawn)
        room = max(shortest, MOST_VALUES // (count * entries))
        most = min(longest, room)
        rows = []
        for _ in range(count):
            row = text.rows[int(torch.randint(len(text.rows), (), generator=rng))]
            size = (
                most
                if float(torch.rand((), generator=rng)) < 0.3
                else int(torch.randint(shortest, most + 1, (), generator=rng))
            )
            begin = int(torch.randint(max(1, len(row) - size + 1), (), generator=rng))
            rows.append(changed(subject, row[begin : begin + size].clone(), rng))
        yield rows
        made += 1


def changed(subject: Subject, row: Tensor, rng: torch.Generator) -> Tensor:
    """A third of the rows as they are; of the others some tokens are drawn anew, or are reserved ones."""
    text, kind = text_of(subject), int(torch.randint(3, (), generator=rng))
    never = forbidden(subject)
    if kind and len(row):
        places = torch.rand(len(row), generator=rng) < (0.5 if kind == 1 else 0.2)
        reserved = [token for token in text.reserved if token not in never]
        if kind == 1 or not reserved:
            drawn = torch.randint(subject.plan.vocabulary, row.shape, generator=rng)
        else:
            drawn = torch.tensor(reserved)[torch.randint(len(reserved), row.shape, generator=rng)]
        row = torch.where(places, drawn, row)
    for token in never:
        row = torch.where(row == token, next(n for n in range(subject.plan.vocabulary) if n not in never), row)
    return row


def forbidden(subject: Subject) -> set[int]:
    """Tokens that this network takes for something else wherever they stand: padding, or an end that it looks for."""
    if subject.external is None:
        return set()
    said = subject.external.declared
    inside = {said.pad, getattr(subject.embedding, "padding_idx", None), said.end}
    return {token for token in inside if token is not None}


def other_endings(subject: Subject, rows: Sequence[Tensor], rng: torch.Generator) -> tuple[list[Tensor], list[int]]:
    """The same rows with other tokens after a random place, and how many tokens each has kept."""
    found, kept = [], []
    for row in rows:
        cut = int(torch.randint(1, len(row) + 1, (), generator=rng))
        drawn = changed(subject, torch.randint(subject.plan.vocabulary, row.shape, generator=rng), rng)
        found.append(torch.cat((row[:cut], drawn[cut:])))
        kept.append(cut)
    return found, kept


def in_batches(subject: Subject) -> Measured | str:
    """Evaluation: other texts, their number and order, padding, later words and earlier calls change nothing."""
    if subject.external is not None and subject.external.declared.end is not None:
        return "It looks for a token at the end of each text."
    return probed(subject, subject.log_p, "batches", subject.tolerance, "").judged(subject.tolerance, "")


def probed(subject: Subject, answer: Answer, use: str, limit: float, where: str) -> Tested:
    tested, rng = Tested(vocabulary=subject.plan.vocabulary), generator(subject.plan.seed, "probe", use, "changes")
    fixed = subject.rows[0][None]
    first = answer(fixed, None)

    def each_of(rows: Sequence[Tensor], filler: int = 0) -> list[Tensor]:
        log_p = answer(*as_batch(rows, filler=subject.pad or filler))
        return [own[: len(row)] if subject.causal else own for own, row in zip(log_p, rows, strict=True)]

    for rows in random_batches(subject, use, SECONDS * subject.patience):
        tested.note(rows)
        before = each_of(rows)
        if subject.causal:
            others, kept = other_endings(subject, rows, rng)
            after = each_of(others)
            same = [(one[:cut], two[:cut]) for one, two, cut in zip(before, after, kept, strict=True)]
            tested.change("later words", *map(list, zip(*same, strict=True)))
        order = torch.randperm(len(rows), generator=rng).tolist()
        tested.change("the order of its batch", [before[n] for n in order], each_of([rows[n] for n in order]))
        for number in order[:ASKED_ALONE]:
            tested.change("the other texts of its batch", [before[number]], each_of([rows[number]]))
        tested.change("what was asked before", [first], [answer(fixed, None)])
        if max(tested.worst.values()) > limit:
            break
    return tested


def every_cut(subject: Subject) -> Measured:
    """All cuts of the longest row and of one with reserved tokens: what follows a place is drawn anew."""
    rng, tested = generator(subject.plan.seed, "probe", "cuts"), Tested(vocabulary=subject.plan.vocabulary)
    text = text_of(subject)
    longest = max(text.rows, key=len)[: subject.plan.shape.length]
    for row in (longest, changed(subject, longest.clone(), rng)):
        before, size = subject.log_p(row[None])[0], max(1, MOST_VALUES // (len(row) * subject.plan.vocabulary))
        for begin in range(0, len(row) - 1, size):
            cuts = range(begin + 1, min(len(row), begin + size + 1))
            others = []
            for cut in cuts:
                drawn = torch.randint(subject.plan.vocabulary, row.shape, generator=rng)
                others.append(torch.cat((row[:cut], changed(subject, drawn, rng)[cut:])))
            tested.note(others)
            after = subject.log_p(torch.stack(others))
            tested.change(
                "later words", [before[:cut] for cut in cuts], [own[:cut] for own, cut in zip(after, cuts, strict=True)]
            )
    tested.worst.setdefault("later words", 0.0)
    return tested.judged(subject.tolerance, "At every place of a text, ")


def in_training_batches(subject: Subject) -> Measured:
    """Training mode without dropout. Statistics of the batch are honest there if scoring uses running ones: they are
    told, and what is left without them must not leak."""
    mode = TrainingMode(subject)
    limit = subject.tolerance
    tested = training_leaks(subject, mode)
    normed = [each for each in mode.network.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)]
    if max(tested.worst.values()) > limit and normed:
        for module in normed:
            module.eval()
        without = training_leaks(subject, mode)
        if max(without.worst.values()) <= limit:
            meaning = (
                f"In training mode {len(normed)} batch norms see the whole batch, later words included; scoring uses"
                " their running statistics, so that scores are honest."
            )
            return Measured(max(tested.worst.values()), "-", None, meaning)
        tested = without
    return tested.judged(limit, "In training mode ")


def training_leaks(subject: Subject, answer: TrainingMode) -> Tested:
    """Of one shape at a time: what is compared differs in the tokens that must not matter only."""
    tested, rng = Tested(vocabulary=subject.plan.vocabulary), generator(subject.plan.seed, "probe", "training")
    for rows in random_batches(subject, "training", SECONDS * subject.patience):
        tested.note(rows)
        before = answer(*as_batch(rows, filler=subject.pad or 0))
        real = [slice(0, len(row)) for row in rows]
        if subject.causal:
            others, kept = other_endings(subject, rows, rng)
            after = answer(*as_batch(others, filler=subject.pad or 0))
            tested.change(
                "later words",
                [o[:c] for o, c in zip(before, kept, strict=True)],
                [o[:c] for o, c in zip(after, kept, strict=True)],
            )
        if len(rows) > 1:
            mine = int(torch.randint(len(rows), (), generator=rng))
            drawn = [
                changed(subject, torch.randint(subject.plan.vocabulary, row.shape, generator=rng), rng) for row in rows
            ]
            drawn[mine] = rows[mine]
            after = answer(*as_batch(drawn, filler=subject.pad or 0))
            part = real[mine] if subject.causal else slice(None)
            tested.change("the other texts of its batch", [before[mine][part]], [after[mine][part]])
        if subject.pad is None and len({len(row) for row in rows}) > 1:
            filler = int(torch.randint(subject.plan.vocabulary, (), generator=rng))
            after = answer(*as_batch(rows, filler=filler))
            parts = [
                (one[own], two[own]) if subject.causal else (one, two)
                for one, two, own in zip(before, after, real, strict=True)
            ]
            tested.change("padding", *map(list, zip(*parts, strict=True)))
        tested.worst.setdefault("later words", 0.0)
        if max(tested.worst.values()) > subject.tolerance:
            break
    return tested


def own_targets(subject: Subject) -> Measured | str:
    """The loss that training lowers, on targets drawn at random: it must rise and fall with the answers that it is
    given. Terms that do not depend on them (balance of experts, decay) may be there."""
    text, rng = text_of(subject), generator(subject.plan.seed, "probe", "targets")
    network, classes = subject.network, subject.plan.vocabulary if subject.causal else subject.plan.classes
    rows = [row for row in text.rows if len(row) > 1][:8] or list(text.rows[:8])
    ids, lengths = as_batch(rows, filler=subject.pad or 0)
    real = torch.arange(ids.shape[1]) < lengths[:, None]

    def both(answers: Tensor) -> tuple[float, float]:
        with torch.no_grad():
            given = answers.masked_fill(~real, -1) if subject.causal else answers
            loss = float(network.loss(ids, lengths, given, 0.0, 1.0)[0])
            logits = network(ids, lengths)
            exact = cross_entropy(
                logits[real] if subject.causal else logits,
                answers[real] if subject.causal else answers,
                reduction="sum",
            )
        return loss, float(exact)

    shape = ids.shape if subject.causal else (len(ids),)
    pairs = [both(torch.randint(classes, shape, generator=rng)) for _ in range(4)]
    gaps = [abs((a[0] - b[0]) - (a[1] - b[1])) / (1 + abs(a[1] - b[1])) for a, b in pairwise(pairs)]
    good = "The loss is that of the answers that it is given."
    bad = "The loss does not follow the answers that it is given: it is computed on other targets, or scaled by them."
    return at_most(max(gaps), 1e-4 if subject.dtype == torch.float64 else 1e-2, good, bad)


def knows_before_training(subject: Subject) -> Measured | str:
    """A network as built must not beat the frequencies of the answers on its own text."""
    text = text_of(subject)
    if subject.plan.module is not None:
        return "A module is audited as it is: its first weights are not known."
    if text.frequencies is None:
        return "Its text is not known."
    if not subject.causal:
        return "Asked of language models: a classifier's text has no answers in it."
    network: Any = subject.fresh
    shares = (text.frequencies.double() + 0.5) / float(text.frequencies.sum() + 0.5 * len(text.frequencies))
    nats = frequent = count = 0.0
    with torch.no_grad():
        for row in islice((row for row in text.rows if len(row) > 1), 32):
            log_p = network(row[None, :-1]).log_softmax(-1)[0]
            nats -= float(log_p.gather(1, row[1:, None]).sum())
            frequent -= float(shares.log()[row[1:]].sum())
            count += len(row) - 1
    lead = (frequent - nats) / max(1.0, count)
    good = "Before training it knows no more of the text than how often each word occurs."
    bad = f"Before any training it predicts the text better than word frequencies, by {lead:.2g} nats per token."
    return at_most(lead, 0.1, good, bad)


def scores_alone(subject: Subject) -> Measured | str | None:
    """The scores that a record reports, beside those of the same items when each is asked by itself, every word of it
    from nothing but the words before it."""
    if subject.trained is None:
        return None
    record, prepared = cast(tuple[Record, Prepared], subject.trained)
    task, reported = prepared.task, record.outcomes()
    network: Any = task.network.eval()
    put_weights(network, load(record.weights()))
    split = next(
        (
            name
            for name in prepared.splits.tests
            if f"{name}/{'nll' if prepared.recipe.task == 'lm' else 'log_p'}" in reported
        ),
        "",
    )
    if not split:
        return "It reports no scores of single items."
    rng = generator(record.result.seed, "probe", "scores")
    if prepared.recipe.task == "lm":
        tokens = task.sets[split]
        return prefixes_alone(network, tokens, reported[f"{split}/nll"], prepared.recipe.shape.length, rng)
    rows, labels = task.sets[split]
    told, worst = reported[f"{split}/log_p"], 0.0
    chosen = torch.randperm(len(rows), generator=rng)[: 4 * SCORED_ALONE].tolist()
    chosen += [int(np.argmax([len(row) for row in rows])), int(np.argmin([len(row) for row in rows]))]
    with torch.no_grad():
        for item in chosen:
            ids = torch.from_numpy(np.asarray(rows[item], np.int64))[None]
            log_p = network(ids, None).double().log_softmax(-1)[0]
            worst = max(worst, abs(float(log_p[int(labels[item])]) - float(told[item])))
    good = f"{len(chosen)} test items have the scores that are reported when each is asked by itself."
    return at_most(
        worst, 1e-2, good, f"A test item asked by itself scores {worst:.2g} nats away from what is reported."
    )


def prefixes_alone(
    network: Any, tokens: TokenSet, told: np.ndarray, length: int, rng: torch.Generator
) -> Measured | str:
    """Documents that are read whole: every word from its bare prefix."""
    if len(tokens.sequences) != tokens.documents:
        return "Its test set is one running text: its documents are not scored by themselves."
    fitting = [n for n, sequence in enumerate(tokens.sequences) if 1 < len(sequence) <= length + 1]
    if not fitting:
        return "No test item is short enough to be read whole."
    order = [fitting[n] for n in torch.randperm(len(fitting), generator=rng)[:SCORED_ALONE].tolist()]
    order.append(max(fitting, key=lambda n: len(tokens.sequences[n])))
    worst = 0.0
    with torch.no_grad():
        for item in order:
            ids, nats = torch.from_numpy(np.asarray(tokens.sequences[item], np.int64)), 0.0
            for place in range(1, len(ids)):
                nats -= float(network(ids[None, :place], None)[0, -1].double().log_softmax(-1)[ids[place]])
            worst = max(worst, abs(nats - float(told[item])) / (len(ids) - 1))
    good = (
        f"{len(order)} test items have the scores that are reported when every word is predicted from its bare prefix."
    )
    bad = f"Predicted from bare prefixes, a test item scores {worst:.2g} nats per word away from what is reported."
    return at_most(worst, 1e-3, good, bad)
