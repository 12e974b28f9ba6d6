"""Random questions to a network on its own text, so that no fault can hide below a size: batches of 1 to 128 rows,
texts of 1 token to the longest, every entry of the real vocabulary, reserved tokens anywhere in a row, every cut of a
row, the batch sizes of training and of scoring. And what scores rest on: a loss and a score of the answers that are
given, no knowledge before training or of random words, and the scores that a record reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor

from fairtrial.audit.subject import MOST_ROWS, Subject, as_batch, generator, largest_change
from fairtrial.finding import Measured, at_most
from fairtrial.training.loop import put_weights
from fairtrial.training.scoring import TOKENS, in_batches, scoring, sliding, window_nats
from fairtrial.training.tasks import LanguageTask

MOST_VALUES = 2**24  # log-probabilities of one batch, so that memory stays small
ASKED_ALONE = 6  # rows of a batch that are asked once more by themselves
SCORED_ALONE = 12  # items of a record whose scores are computed once more
SCORED_BATCHES = 3  # batches of windows that are scored once more
FEWEST = 3  # random batches, whatever the time
LUCK = 6.0  # standard errors above chance, in predicting what cannot be predicted
Answer = Callable[[Tensor, Tensor | None], Tensor]


@dataclass
class Tested:
    """The ranges that were asked about, which the finding tells."""

    subject: Subject = field(repr=False)
    batches: int = 0
    counts: int = 0  # numbers of rows that one text was among
    rows: tuple[int, int] = (MOST_ROWS, 0)
    lengths: tuple[int, int] = (10**9, 0)
    worst: dict[str, float] = field(default_factory=dict)

    @property
    def largest(self) -> float:
        """Of all changes; infinite where one is no number."""
        return max(self.worst.values())

    def note(self, rows: Sequence[Tensor]) -> None:
        self.batches += 1
        self.rows = min(self.rows[0], len(rows)), max(self.rows[1], len(rows))
        sizes = [len(row) for row in rows]
        self.lengths = min(self.lengths[0], *sizes), max(self.lengths[1], *sizes)

    def change(self, fault: str, before: Sequence[Tensor], after: Sequence[Tensor]) -> None:
        self.worst[fault] = max(self.worst.get(fault, 0.0), largest_change(before, after))

    def judged(self, limit: float, where: str) -> Measured:
        ranges = (
            f"{self.batches} random batch{'es' * (self.batches > 1)} of {span(*self.rows)} rows and"
            f" {span(*self.lengths)} tokens, {self.subject.plan.vocabulary:,} entries"
        ) + (f", {self.counts} of {MOST_ROWS} numbers of rows" if self.counts else "")
        value, fault = max((change, fault) for fault, change in self.worst.items())
        good = f"{where}predictions depend only on what they may see ({ranges})."
        bad = f"{where}predictions depend on {fault}, by up to {value:.2g} nats ({ranges})."
        return at_most(value, limit, good[0].upper() + good[1:], bad[0].upper() + bad[1:])


def span(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"


def random_batches(subject: Subject, use: str, seconds: float) -> Iterator[list[Tensor]]:
    """Batches of rows, until the time is over: first those of training and scoring and the largest, then any."""
    text, rng = subject.own_text, generator(subject.plan.seed, "probe", use)
    ends = subject.external is not None and subject.external.declared.end is not None
    source = subject.rows if ends else text.rows
    longest, shortest = min(subject.plan.shape.length, max(map(len, source))), subject.shortest
    entries = subject.plan.vocabulary if subject.causal else subject.plan.classes * 64
    sizes = [*text.batches, MOST_ROWS, 1]
    started, made = time.process_time(), 0

    def draw(high: int, low: int = 0) -> int:
        return int(torch.randint(low, high, (), generator=rng))

    while made < FEWEST or time.process_time() - started < seconds:
        drawn = float(torch.rand((), generator=rng))
        count = sizes[made] if made < len(sizes) else round(MOST_ROWS**drawn)
        most = min(longest, max(shortest, MOST_VALUES // (count * entries)))
        rows: list[Tensor] = []
        for _ in range(count):
            row = source[draw(len(source))]
            if ends:  # what it looks for stays where it is
                rows.append(row)
                continue
            size = most if draw(10) < 3 else draw(most + 1, shortest)
            begin = draw(max(1, len(row) - size + 1))
            row = changed(subject, row[begin : begin + size].clone(), rng)
            if rows and draw(5) == 0:  # it begins as another row of its batch, or is the same
                other = rows[draw(len(rows))]
                row = torch.cat((other[: draw(len(other)) + 1], row))[: max(len(row), shortest)]
            rows.append(row)
        yield rows
        made += 1


def changed(subject: Subject, row: Tensor, rng: torch.Generator, kind: int | None = None) -> Tensor:
    """A row as it is (0), with some tokens drawn anew (1), or reserved (2), or of few words that come again (3), or
    with reserved tokens almost everywhere, so that every pair of them occurs (4)."""
    text, kind = subject.own_text, int(torch.randint(5, (), generator=rng)) if kind is None else kind
    never = forbidden(subject)
    reserved = [token for token in text.reserved if token not in never]
    if kind and len(row):
        drawn = torch.randint(subject.plan.vocabulary, row.shape, generator=rng)
        if kind in (2, 4) and reserved:
            drawn = torch.tensor(reserved)[drawn % len(reserved)]
        elif kind == 3:
            drawn = row[drawn % min(3, len(row))]
        row = torch.where(torch.rand(len(row), generator=rng) < (1.0, 0.5, 0.2, 0.9, 0.9)[kind], drawn, row)
    for token in never:
        row = torch.where(row == token, next(n for n in range(subject.plan.vocabulary) if n not in never), row)
    return row


def drawn_like(subject: Subject, row: Tensor, rng: torch.Generator) -> Tensor:
    """As many tokens of other text."""
    return changed(subject, torch.randint(subject.plan.vocabulary, row.shape, generator=rng), rng)


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
        found.append(torch.cat((row[:cut], drawn_like(subject, row, rng)[cut:])))
        kept.append(cut)
    return found, kept


def later_words(tested: Tested, before: Sequence[Tensor], after: Sequence[Tensor], kept: Sequence[int]) -> None:
    """What a row gives up to its cut, with one ending and with another."""
    same = [(one[:cut], two[:cut]) for one, two, cut in zip(before, after, kept, strict=True)]
    tested.change("later words", [one for one, _ in same], [two for _, two in same])


def every_cut(
    subject: Subject,
    answer: Answer,
    rows: Sequence[Tensor],
    tested: Tested,
    most: int = 10**9,
    same_shape: bool = False,
) -> None:
    """All cuts of each row, or `most` of them: what follows a place is drawn anew, or is all one token. `same_shape`:
    compared within batches of one shape only, in which what is drawn at random is the same."""
    rng = generator(subject.plan.seed, "probe", "cuts")
    for row in (row for row in rows if len(row) > 1):
        before, size = answer(row[None], None)[0], max(1, MOST_VALUES // (len(row) * subject.plan.vocabulary))
        cuts = torch.arange(1, len(row))
        cuts = cuts if len(cuts) <= most else cuts[torch.randperm(len(cuts), generator=rng)[:most]]
        for chosen in cuts.split(size):
            others = []
            for cut in chosen.tolist():
                drawn = drawn_like(subject, row, rng)
                others.append(torch.cat((row[:cut], (drawn if cut % 4 else drawn[:1].expand_as(row))[cut:])))
            tested.note(others)
            own = answer(row.repeat(len(others), 1), None) if same_shape else [before] * len(others)
            later_words(tested, list(own), list(answer(torch.stack(others), None)), chosen.tolist())
    tested.worst.setdefault("later words", 0.0)


def longest_rows(subject: Subject) -> list[Tensor]:
    """The longest row of its text, the same with reserved and other tokens, and a random one."""
    rng = generator(subject.plan.seed, "probe", "rows")
    row = max(subject.own_text.rows, key=len)[: subject.plan.shape.length].clone()
    drawn = torch.randint(subject.plan.vocabulary, row.shape, generator=rng)
    return [changed(subject, each, rng, kind=kind) for each, kind in ((row, 0), (row, 2), (drawn, 0))]


def sees_future(subject: Subject) -> Measured:
    """Every cut of three rows; bare beginnings, which have no ending at all; and every entry of the vocabulary, as the
    last word that may be seen and as the first that may not, as far as the time goes."""
    tested, rows = Tested(subject), longest_rows(subject)
    every_cut(subject, subject.log_p, rows, tested)
    whole, shortest = subject.log_p(rows[0][None])[0], subject.shortest
    for cut in range(shortest, len(rows[0])):
        later_words(tested, [whole], [subject.log_p(rows[0][None, :cut])[0]], [cut])
    count = every_entry(subject, tested)
    good = "No prediction depends on later words, at any place of a text"
    bad = f"Later words change earlier predictions, by up to {tested.worst['later words']:.2g} nats: it sees the future"
    ranges = f" (up to {tested.lengths[1]} tokens; {count:,} of {subject.plan.vocabulary:,} entries)."
    return at_most(tested.worst["later words"], subject.tolerance, good + ranges, bad + ranges)


def every_entry(subject: Subject, tested: Tested) -> int:
    """Short rows with one entry before the cut and another after it, reserved ones first; how many were asked."""
    rng, never = generator(subject.plan.seed, "probe", "entries"), forbidden(subject)
    first = [token for token in subject.own_text.reserved if token not in never]
    entries = [token for token in torch.randperm(subject.plan.vocabulary, generator=rng).tolist() if token not in never]
    order = torch.tensor(list(dict.fromkeys([*first, *entries])))
    length = max(4, subject.shortest)
    if length > subject.plan.shape.length or len(order) < 2:
        return 0
    size = max(1, min(len(order), MOST_VALUES // (length * subject.plan.vocabulary) // 2))
    started, done = time.process_time(), 0
    for seen in order.split(size):
        ids = order[torch.randint(len(order), (len(seen), length), generator=rng)]
        other = order[torch.randint(len(order), ids.shape, generator=rng)]
        cut = int(torch.randint(1, length, (), generator=rng))
        ids[:, cut - 1] = seen
        ids[:, cut] = seen.flip(0)
        other[:, :cut] = ids[:, :cut]
        later_words(tested, list(subject.log_p(ids)), list(subject.log_p(other)), [cut] * len(ids))
        done += len(seen)
        if time.process_time() - started > subject.seconds:
            break
    return done


def depends_on_batch(subject: Subject) -> Measured:
    """Evaluation: other texts, their number and order, padding, later words and earlier calls change nothing."""
    tested, rng = Tested(subject), generator(subject.plan.seed, "probe", "batches", "changes")
    fixed, pad = subject.rows[0][None], subject.pad or 0
    first = subject.log_p(fixed)
    for rows in random_batches(subject, "batches", subject.seconds):
        tested.note(rows)
        before = subject.answers(rows, filler=pad)
        width = min(max(map(len, rows)) + 1, subject.plan.shape.length)
        filler = drawn_like(subject, torch.zeros(width, dtype=torch.long), rng) if subject.pad is None else pad
        tested.change("padding", before, subject.answers(rows, width, filler))
        if subject.causal:
            others, kept = other_endings(subject, rows, rng)
            later_words(tested, before, subject.answers(others, filler=pad), kept)
        order = torch.randperm(len(rows), generator=rng).tolist()
        turned = subject.answers([rows[n] for n in order], filler=pad)
        tested.change("the order of its batch", [before[n] for n in order], turned)
        for number in order[:ASKED_ALONE]:
            tested.change("the other texts of its batch", [before[number]], subject.answers([rows[number]]))
        tested.change("earlier requests", [first], [subject.log_p(fixed)])
        if not tested.largest <= subject.tolerance:
            return tested.judged(subject.tolerance, "")
    every_count(subject, tested)
    return tested.judged(subject.tolerance, "")


def every_count(subject: Subject, tested: Tested) -> None:
    """A short text among 1 to 128 rows, every number of them in a random order, as far as the time goes."""
    rng, started = generator(subject.plan.seed, "probe", "counts"), time.process_time()
    size = min(subject.longest, max(2, subject.shortest))
    if subject.external is not None and subject.external.declared.end is not None:
        return
    ids = torch.stack([drawn_like(subject, subject.rows[0][:size], rng) for _ in range(MOST_ROWS)])
    alone = subject.log_p(ids[:1])
    for count in (torch.randperm(MOST_ROWS, generator=rng) + 1).tolist():
        tested.counts += 1
        tested.change("the number of texts in its batch", [alone[0]], [subject.log_p(ids[:count])[0]])
        if time.process_time() - started > subject.seconds:
            break


def probed(subject: Subject, answer: Answer, use: str, limit: float) -> Tested:
    """Random batches, and every cut of a row, until something leaks."""
    tested, rng = Tested(subject), generator(subject.plan.seed, "probe", use, "changes")
    for rows in random_batches(subject, use, subject.seconds / 2):
        leaks(subject, answer, rows, tested, rng)
        if not tested.largest <= limit:
            return tested
    if subject.causal:
        every_cut(subject, answer, longest_rows(subject)[1:2], tested, same_shape=use.startswith("training"))
    return tested


def leaks(subject: Subject, answer: Answer, rows: Sequence[Tensor], tested: Tested, rng: torch.Generator) -> None:
    """Questions of one shape: what is compared differs only in tokens that must not matter, so that a network which
    drops something drops the same."""
    tested.note(rows)
    ids, lengths = as_batch(rows, filler=subject.pad or 0)
    before = real_answers(subject, answer(ids, lengths), rows)
    if subject.causal:
        others, kept = other_endings(subject, rows, rng)
        after = answer(as_batch(others, filler=subject.pad or 0)[0], lengths)
        later_words(tested, before, list(after), kept)
    if len(rows) > 1:
        mine = int(torch.randint(len(rows), (), generator=rng))
        drawn = [drawn_like(subject, row, rng) for row in rows]
        drawn[mine] = rows[mine]
        after = answer(as_batch(drawn, filler=subject.pad or 0)[0], lengths)
        tested.change("the other texts of its batch", [before[mine]], [real_answers(subject, after, rows)[mine]])
    if subject.pad is None and len({len(row) for row in rows}) > 1:
        filler = int(torch.randint(subject.plan.vocabulary, (), generator=rng))
        after = answer(as_batch(rows, filler=filler)[0], lengths)
        tested.change("padding", before, real_answers(subject, after, rows))
    tested.worst.setdefault("padding", 0.0)


def real_answers(subject: Subject, log_p: Tensor, rows: Sequence[Tensor]) -> list[Tensor]:
    return [own[: len(row)] if subject.causal else own for own, row in zip(log_p, rows, strict=True)]


def own_targets(subject: Subject) -> Measured | str:
    """Score and loss of some texts, and of as many as a batch of training has. The worst of the two."""
    text = subject.own_text
    rows = [row for row in text.rows if len(row) > 1] or list(text.rows)
    length = max(map(len, rows))
    classes = subject.plan.vocabulary if subject.causal else subject.plan.classes
    most = max(1, min(text.batches[0], MOST_VALUES // (length * classes)))
    judged = targets_of(subject, rows[:8])
    if not judged.passed or most <= 8:
        return judged
    return targets_of(subject, (rows * (1 + most // len(rows)))[:most])


def targets_of(subject: Subject, rows: Sequence[Tensor]) -> Measured:
    """The score and the loss, of answers that are drawn after the network was asked: it cannot know them. A loss of its
    own must rise and fall with the answers; terms that do not depend on them (balance of experts, decay) may be
    there."""
    rng = generator(subject.plan.seed, "probe", "targets")
    network, classes = subject.network, subject.plan.vocabulary if subject.causal else subject.plan.classes
    ids, lengths = as_batch(rows, filler=subject.pad or 0)
    real = torch.arange(ids.shape[1]) < lengths[:, None] if subject.causal else torch.ones(len(ids), dtype=torch.bool)
    log_p = subject.log_p(ids, lengths)[real]

    @torch.no_grad()
    def asked(answers: Tensor) -> tuple[float, float]:
        """(loss, nats) of these answers, and nats as they follow from the answer that was given before"""
        given = torch.full(real.shape, -1).masked_scatter(real, answers)
        return float(network.loss(ids, lengths, given, 0.0, 1.0)[0]), nats_of(answers)

    def nats_of(answers: Tensor) -> float:
        return -float(log_p.gather(-1, answers[:, None]).sum())

    limit = 1e-4 if subject.dtype == torch.float64 else 1e-2
    drawn = [torch.randint(classes, (len(log_p),), generator=rng) for _ in range(6)]
    if subject.causal:
        given = torch.full(real.shape, -1).masked_scatter(real, drawn[0])
        gap = abs(float(network.nll(ids, lengths, given).sum()) / nats_of(drawn[0]) - 1)
        if not gap <= limit:
            return at_most(gap, limit, "", f"Answers score {gap:.2g} of their nats away from the predictions.")
    best, least = log_p.argmax(-1), log_p.argmin(-1)
    pairs = [asked(answers) for answers in (*drawn, best, least)]
    gaps = [abs((a[0] - b[0]) - (a[1] - b[1])) / (1 + abs(a[1] - b[1])) for a, b in pairwise(pairs)]
    good = "Score and loss follow the given answers."
    if max(gaps) <= limit:
        return at_most(max(gaps), limit, good, "")
    if subject.external is not None and subject.external.declared.loss and follows(asked, best, least):
        meaning = "Its own loss falls with better answers, but is not their cross entropy."
        return Measured(max(gaps), f"{limit:.0e}", False, meaning, level="amber")
    bad = "The loss does not follow the given answers: it uses other targets or is scaled by them."
    return at_most(max(gaps), limit, good, bad)


def follows(asked: Callable[[Tensor], tuple[float, float]], best: Tensor, least: Tensor) -> bool:
    """Whether a loss is lowest for the best answer of each place: not for the worst, nor for those of other places."""
    moved = [best.roll(steps) for steps in (1, -1, 2, -2)]
    lowest = asked(best)[0]
    return lowest < asked(least)[0] and all(lowest <= asked(answers)[0] for answers in moved)


def knows_before_training(subject: Subject) -> Measured | str:
    """A network as built must not beat the frequencies of the answers, neither on training nor on test texts."""
    text = subject.own_text
    if subject.plan.module is not None:
        return "The initial weights of a module are unknown."
    if text.frequencies is None or not text.examples:
        return "Its training text is unknown."
    network: Any = subject.fresh
    shares = (text.frequencies.double() + 0.5) / float(text.frequencies.sum() + 0.5 * len(text.frequencies))
    leads = {where: lead_over(network, examples, shares) for where, examples in text.examples.items()}
    where = max(leads, key=lambda name: leads[name])
    good = "Before training, it predicts answers no better than their frequencies do."
    bad = f"Before any training it predicts {where} better than frequencies do, by {leads[where]:.2g} nats per answer."
    return at_most(leads[where], 0.1 if subject.causal else 0.2, good, bad)  # few classes are guessed by luck


@torch.no_grad()
def lead_over(network: Any, examples: Sequence[tuple[Tensor, Tensor]], shares: Tensor) -> float:
    """Nats per answer by which a network beats frequencies and a uniform guess; `examples`: texts and their answers."""
    nats = frequent = uniform = count = 0.0
    labels = torch.cat([answers.reshape(-1) for _, answers in examples])
    own = (torch.bincount(labels, minlength=len(shares)) + 0.5) / (len(labels) + 0.5 * len(shares))
    shares = own if all(not answers.dim() for _, answers in examples) else shares  # few classes: of these very items
    for ids, answers in examples:
        log_p = network(ids[None]).log_softmax(-1)[0]
        nats -= float(log_p.gather(-1, answers[..., None]).sum())
        frequent -= float(shares.log()[answers].sum())
        uniform += math.log(len(shares)) * answers.numel()
        count += answers.numel()
    return (min(frequent, uniform) - nats) / max(1.0, count)


def predicts_random_words(subject: Subject) -> Measured | str:
    """Words drawn at random cannot be predicted, so whoever does has seen them: through the future, a file, its callers
    or an earlier call. In float32, in the batches of training and scoring, in evaluation and in training mode."""
    text, rng = subject.own_text, generator(subject.plan.seed, "probe", "random words")
    network, worst = subject.another().float(), 0.0
    allowed = torch.tensor([n for n in range(subject.plan.vocabulary) if n not in forbidden(subject)])
    length = min(subject.plan.shape.length, max(map(len, text.rows)))
    if length < max(2, subject.shortest):
        return "Its texts have only one word."
    for rows, training in product(dict.fromkeys(text.batches), (False, True)):
        rows = max(1, min(rows, MOST_VALUES // (length * subject.plan.vocabulary)))
        ids = allowed[torch.randint(len(allowed), (rows, length), generator=rng)]
        log_p = network.train(training)(ids).detach()[:, :-1].log_softmax(-1)
        log_p, coming = log_p[..., allowed], torch.searchsorted(allowed, ids[:, 1:].contiguous())
        own = log_p.gather(-1, coming[..., None])
        below = (log_p < own).double().mean(-1) + ((log_p == own).double().mean(-1) - 1 / len(allowed)) / 2
        worst = max(worst, (float(below.mean()) - 0.5 + 0.5 / len(allowed)) * math.sqrt(12 * below.numel()))
    good = "It predicts random words no better than chance."
    bad = f"It predicts words that were drawn at random, by {worst:.0f} standard errors above chance."
    return at_most(worst, LUCK, good, bad)


def scores_alone(subject: Subject) -> Measured | str | None:
    """The scores that a record reports and the function that made them, beside the same items when each is asked by
    itself, every word of it from nothing but the words before it."""
    if subject.trained is None:
        return None
    record, prepared = subject.trained
    if prepared is None:
        return "Its data are missing or have changed, so scores cannot be computed again."
    task, reported = prepared.task, record.outcomes()
    network: Any = task.network.eval()
    put_weights(network, load(record.weights()))
    array = "nll" if prepared.recipe.task == "lm" else "log_p"
    split = next((name for name in prepared.splits.tests if f"{name}/{array}" in reported), "")
    if not split:
        return "It reports no scores per item."
    rng = generator(record.result.seed, "probe", "scores")
    limit = 1e-3 if getattr(network, "precision", "float32") == "float32" else 0.3
    told = reported[f"{split}/{array}"]
    if prepared.recipe.task == "lm":
        worst, count = prefixes_alone(cast(LanguageTask, task), split, told, rng)
        good = f"{count} words of test texts score as reported when each is predicted from the preceding words alone."
        bad = f"Predicted from preceding words alone, a test text is {worst:.2g} nats per word off its reported score."
        return at_most(worst, limit, good, bad)
    rows, labels = task.sets[split]
    chosen = torch.randperm(len(rows), generator=rng)[: 4 * SCORED_ALONE].tolist()
    chosen += [int(np.argmax([len(row) for row in rows])), int(np.argmin([len(row) for row in rows]))]
    alone = ask_alone(network, [rows[item] for item in chosen])
    worst = max(
        abs(float(log_p[int(labels[item])]) - float(told[item])) for log_p, item in zip(alone, chosen, strict=True)
    )
    good = f"{len(chosen)} test items score as reported when each is scored alone."
    bad = f"A test item scored alone is {worst:.2g} nats away from its reported score."
    return at_most(worst, 10 * limit, good, bad)


def ask_alone(network: Any, texts: Sequence[np.ndarray]) -> list[Tensor]:
    """Log-probabilities of each, in a thread whose functions know nothing else: no answer, no later word."""

    def ask(ids: Tensor) -> Tensor:
        with scoring(network):
            return network(ids, None)[0].double().log_softmax(-1)

    with ThreadPoolExecutor(1) as thread:
        return [thread.submit(ask, torch.from_numpy(np.array(text, np.int64))[None]).result() for text in texts]


def prefixes_alone(task: LanguageTask, split: str, told: np.ndarray, rng: torch.Generator) -> tuple[float, int]:
    """Some batches as scoring makes them. First their words are asked from bare beginnings, then the batches are scored
    by the function that scores records; documents that are whole in them have the nats that are reported."""
    network, tokens, length = task.network, task.sets[split], task.length
    stride = max(1, int(length * (1 - task.context(tokens))))
    batches = list(in_batches(sliding(tokens.sequences, length, stride), TOKENS))
    chosen = [batches[n] for n in torch.randperm(len(batches), generator=rng)[:SCORED_BATCHES].tolist()]
    worst, asked, complete = 0.0, 0, np.bincount(tokens.target_owners()[0], minlength=tokens.documents)
    for batch in chosen:
        places = [(window, place) for window in batch for place in range(window.counted, window.end)]
        picked = torch.randperm(len(places), generator=rng)[: 4 * SCORED_ALONE].tolist()
        beginnings = [tokens.sequences[places[n][0].sequence][places[n][0].begin : places[n][1] + 1] for n in picked]
        alone = [log_p[-1] for log_p in ask_alone(network, beginnings)]
        (nats,) = window_nats(network, tokens, batch)
        for n, log_p in zip(picked, alone, strict=True):
            window, place = places[n]
            worst = max(worst, abs(float(log_p[int(tokens.sequences[window.sequence][place + 1])]) + float(nats[n])))
        owners = np.array([tokens.owners[window.sequence][place + 1] for window, place in places])
        sums, counts = np.bincount(owners, nats, tokens.documents), np.bincount(owners, minlength=tokens.documents)
        whole = (counts > 0) & (counts == complete)
        worst = max(worst, float((np.abs(sums - told)[whole] / counts[whole]).max(initial=0.0)))
        asked += len(picked)
    return worst, asked
