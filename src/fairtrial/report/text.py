"""What commands print: records, baselines, audits, parameters, attention, errors and surprisal as lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.description import Cell, Table, row
from fairtrial.finding import Finding, summary, table_lines
from fairtrial.formatting import KINDS, bracket, format_parts, format_time, vocabulary_of
from fairtrial.record import Listed, Record
from fairtrial.report.curves import Curve, curves_of, trained_seconds
from fairtrial.report.render import as_text, plain, wrapped
from fairtrial.report.words import OTHER_VOCABULARIES, accuracy_text, copies_text, describe_result, describe_score
from fairtrial.results.sentences import VOCABULARIES_DIFFER, counted
from fairtrial.stored import Metrics, TaskBaselines

if TYPE_CHECKING:
    from rich.text import Text

MOST_CURVE_ROWS = 21
LISTING = ("record", "task", "recipe", "parts", "seed", "test sets")
SPARKS = "▁▂▃▄▅▆▇█"

BAR = 20  # letters of a reliability bar
ATTRIBUTIONS = {"gradient_times_input": "gradient x input", "leave_one_out": "leave-one-out"}
MAP_SCALE = (
    "No colour is 0% of the attention, full colour 100%; it grows with the square root of the share:"
    " a share of 4% has a fifth of the colour, 25% half."
)
CAUTION = "Attention is where a head looked, not why the model decided."

Piece = tuple[str, float | None]  # text, nats; None: not counted

# nats from which a colour is used: black on ever deeper orange, so that it reads on light and dark terminals
SCALE = ((2.0, "#ffe8cc"), (4.0, "#ffcf99"), (6.0, "#ffb066"), (8.0, "#ff8a3d"), (10.0, "#f4622a"))


def record_lines(record: Record, names: Sequence[str] | None = None) -> list[str]:
    """`names`: of the classes, instead of their labels."""
    recipe, trial = record.recipe, record.trial
    training, shape, environment = recipe.training, recipe.shape, trial.environment
    documents = ", ".join(f"{count:,} {name}" for name, count in trial.counts.documents.items())
    lines = [
        f"{record.folder}: {KINDS[recipe.task]}, recipe {recipe.name or 'unnamed'!r}, seed {trial.seed}",
        f"  data      {recipe.data.source} ({documents})",
        f"  tokens    {recipe.tokens.kind}, vocabulary {trial.counts.vocabulary:,}",
        f"  shape     {counted(shape.layers, 'layer')}, {counted(shape.heads, 'head')},"
        f" width {shape.width}, feed-forward {shape.hidden},"
        f" length {shape.length}, dropout {shape.dropout:g}"
        + (f" (of attention weights {shape.attention_dropout:g})" if shape.attention_dropout else ""),
        f"  parts     {format_parts(recipe)}",
        f"  training  {training.duration}, batch {training.batch}, {training.optimizer},"
        f" learning rate {training.learning_rate:g}",
    ]
    if record.complete:
        lines.append(f"  size      {record.result.parameters:,} parameters")
    lines.append(f"  took      {format_time(trained_seconds(record.clock()))} in all")
    lines += [f"  note      {note}" for note in trial.notes]
    if trial.cite:
        lines.append(f"  cite      {trial.cite}")
    lines += ["", *curve_lines(curves_of(record.events())), ""]
    if record.complete:
        lines += describe_result(record.result, recipe, record.baseline)
        for name, score in record.result.tests.items():
            if score.confusion is not None:
                lines += as_text(confusion_table(f"confusion on {name}", score.confusion, record.class_names(names)))
    else:
        lines.append(f"not finished; continue with: fairtrial train --resume {record.folder}")
    digests = " ".join(f"{name}:{digest[:8]}" for name, digest in sorted(trial.data.items())[:6])
    lines += [
        "",
        f"fingerprints: recipe {trial.recipe}, code {trial.code}, data {digests}",
        f"environment: Python {environment.python}, torch {environment.torch},"
        f" {environment.threads} thread(s), {environment.system} {environment.machine}"
        + "".join(
            f", {each}" for each in (environment.device, environment.precision) if each not in ("cpu", "float32")
        ),
    ]
    return [plain(line) for line in lines]


def listing_lines(listed: Iterable[Listed]) -> list[str]:
    """One line for each record; the damaged ones say why below."""
    damaged, counts = [], Counter[str]()

    def sound() -> Iterator[Listed]:
        for each in listed:
            counts[each.state] += 1
            if each.problem:
                damaged.append(f"damaged: {each.problem}")
            else:
                yield each

    table = listing_table(sound())
    rows = [table.columns, *([cell.text for cell in cells] for cells in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in rows]
    told = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    note = wrapped(table.note, indent="") if table.note else []
    return [plain(line.rstrip()) for line in [*lines, *damaged, *note, f"{counts.total():,} records: {told}"]]


def listing_table(listed: Iterable[Listed]) -> Table:
    """A row for each record. Where vocabularies differ, language models have bits per byte, and the note says why."""
    vocabularies, rows = set(), []
    for each in listed:  # of thousands: none is kept
        rows.append([listing_row(each, in_bits) for in_bits in (False, True)])
        if not each.problem and each.record.complete and each.record.recipe.task == "lm":
            vocabularies.add(vocabulary_of(each.record.recipe))
    differ = len(vocabularies) > 1
    note = VOCABULARIES_DIFFER.replace("compared", "listed") if differ else ""
    return Table("", LISTING, tuple(either[differ] for either in rows), note, text_columns=6)


def listing_row(each: Listed, in_bits: bool) -> tuple[Cell, ...]:
    """`in_bits`: language models by their bits per byte."""
    if each.problem:
        return row(str(each.record.folder), "", "", "", "", f"damaged: {each.problem}")
    recipe, scores = each.record.recipe, each.record.result.tests if each.record.complete else {}
    told = ", ".join(describe_final(name, score, in_bits) for name, score in scores.items()) or each.state
    name, seed = recipe.name or "unnamed", str(each.record.trial.seed)
    return row(str(each.record.folder), recipe.task, name, format_parts(recipe), seed, told)


def describe_final(test: str, score: Metrics, in_bits: bool) -> str:
    """As a result's table has it, not as a curve's point."""
    if score.perplexity is None:
        return describe_score(test, score)
    if in_bits:
        return f"{test} {score.bits_per_byte:.3f} bits per byte"
    return f"{test} perplexity {score.perplexity:.1f}"


def curve_lines(curves: list[Curve]) -> list[str]:
    """One row for each scored step, one column for each split, sparklines on top."""
    if not curves:
        return ["no scores yet"]
    steps = evenly(sorted({step for curve in curves for step, _ in curve.points}), MOST_CURVE_ROWS)
    values, unit = [dict(curve.points) for curve in curves], curves[0].unit
    form = "{:.1%}" if unit == "accuracy" else "{:.1f}"
    rows = [row("", *map(spark, curves))]
    for step in steps:
        rows.append(row(str(step), *(form.format(value[step]) if step in value else "" for value in values)))
    return as_text(Table(f"curves ({unit}):", ("step", *(curve.name for curve in curves)), tuple(rows)))


def spark(curve: Curve) -> str:
    """At most ten blocks that rise and fall with the curve."""
    chosen = evenly([value for _, value in curve.points if math.isfinite(value)], 10)
    low, high = min(chosen, default=0.0), max(chosen, default=0.0)
    return "".join(SPARKS[int((value - low) / (high - low or 1) * 7)] for value in chosen)


def evenly(values: Sequence[Any], most: int) -> Sequence[Any]:
    """At most so many of them, with both ends."""
    few = len(values) <= most
    return values if few else [values[round(at * (len(values) - 1) / (most - 1))] for at in range(most)]


def confusion_table(
    title: str, confusion: Sequence[Sequence[int]], labels: Sequence[str], scores: Sequence[Mapping[str, Any]] = ()
) -> Table:
    """Rows are true classes, columns guessed ones; `scores`: precision, recall and F1 of each class."""
    measures = ("precision", "recall", "f1") if scores else ()
    rows = tuple(
        row(label, *counts, *(percent(score[name]) for name in measures))
        for label, counts, score in zip(labels, confusion, scores or [{}] * len(labels), strict=True)
    )
    columns = ("true class", *labels, *(name.replace("f1", "F1") for name in measures))
    return Table(f"{title} (rows: true class, columns: guessed class)", columns, rows)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def baseline_lines(scores: TaskBaselines) -> Iterator[str]:
    yield (
        f"{scores.task}: {scores.source}, recipe {scores.recipe or 'of your own'}, seed {scores.seed};"
        f" fitted on {scores.documents['train']:,} documents"
    )
    yield from (f"note: {note}" for note in scores.notes)
    for table in baseline_tables(scores):
        yield from as_text(table)
    note = "Intervals: 95% over test items. A transformer that does not beat these does no better than counting words."
    if scores.task == "lm":
        note += f" {OTHER_VOCABULARIES}"
    yield from wrapped(note)


def baseline_tables(scores: TaskBaselines) -> Iterator[Table]:
    """One for each test set."""
    metric = "accuracy" if scores.task == "classify" else "perplexity"
    for name, copies in scores.sets.items():
        copied = copies["exact"] + copies["near"]
        there = {"all": True, "clean": copied and copies["clean"], "contaminated": copied}
        shown = [subset for subset, items in there.items() if items]
        rows = tuple(
            row(baseline, *(baseline_cell(sets[name].get(subset)) for subset in shown), *every_byte(sets[name]["all"]))
            for baseline, sets in scores.baselines.items()
        )
        more = ("bits per byte", "unknown") if metric == "perplexity" else ()
        yield Table(f"{name}: {copies_text(copies)}", (metric, *shown, *more), rows)


def every_byte(score: Metrics) -> tuple[str, ...]:
    """What compares language models of other vocabularies."""
    return () if score.accuracy is not None else (f"{score.bits_per_byte:.3f}", f"{score.unknown_share:.1%}")


def baseline_cell(score: Metrics | None) -> str:
    if score is not None and score.accuracy is not None:
        return accuracy_text(score)
    if score is None or score.perplexity is None:
        return ""
    return f"{score.perplexity:.1f}" + bracket(score.interval)


def audit_lines(audit: Mapping[str, Any], width: int = 120) -> Iterator[str]:
    """`audit`: what `audit_data` found for one task."""
    findings = [Finding.from_dict(finding) for finding in audit["findings"]]
    documents = ", ".join(f"{count:,} {name}" for name, count in audit["documents"].items() if count)
    yield f"{audit['task']}: {audit['source']} (recipe {audit['recipe'] or 'of your own'}: {documents})"
    for name, copies in audit["sets"].items():
        yield f"  {name}: {copies_text(copies)}"
    yield ""
    yield from table_lines(findings, width, explain_passed=False)
    for note in audit["notes"]:
        yield f"  note: {note}"
    yield from [""] * bool(audit["notes"])
    repairable = any(finding.verdict == "RED" and finding.id in ("D1", "D1n", "D1c") for finding in findings)
    hint = f" (repair it with: fairtrial data clean --data {audit['source']} --out FOLDER)" if repairable else ""
    yield summary(findings) + hint


def sum_table(counted: Sequence[str], rows: Sequence[tuple[Any, ...]], title: str = "") -> Table:
    """Rows of component, formula and what is `counted`, and the sums."""
    body = [row(component, Cell(formula, kind="formula"), *counts) for component, formula, *counts in rows]
    sums = row("total", "", *map(sum, list(zip(*rows, strict=True))[2:]))
    return Table(title, ("component", "formula", *counted), (*body, sums), text_columns=2, total=True)


def look_lines(look: Any) -> list[str]:
    """Where heads look (`inspection.look.LookResult`): checks of the maps, one row for each head."""
    lines = []
    for drawn in look.drawn:
        lines.append(plain(drawn.text if len(drawn.text) <= 100 else drawn.text[:99] + "…"))
        lines += [f"  notice: {plain(text)}" for text in notices_of(drawn.trained)]
        for name, maps in (("trained", drawn.trained), (look.stage, drawn.untrained)):
            for check in maps.checks:
                value = f"{check.value:.1e}" if check.value else "0"
                passed = "yes" if check.passed else "NO"
                lines.append(f"  {name:<11}{passed:<4}{check.name} ({check.meaning}: {value})")
    return [*lines, "", *as_text(head_table(look)), "", CAUTION]


def notices_of(maps: Any) -> list[str]:
    """What a reader of these maps must know."""
    unknown = ", ".join(repr(word) for word in dict.fromkeys(maps.unknown))
    return [text for text in (maps.cut, unknown and f"unknown to the model, which reads <unk>: {unknown}") if text]


def head_table(look: Any) -> Table:
    """One row for each head: its caption, and the change of the score without it."""
    tests = list(dict.fromkeys(effect.test for effect in look.effects))
    rows = []
    for head in look.heads:
        place = (head.layer, head.head)
        effects = [change(asdict(effect)) for effect in look.effects if (effect.layer, effect.head) == place]
        rows.append(row(str(head.layer), str(head.head), head.caption, *effects))
    columns = ("layer", "head", "where it looks", *(f"without it: {test}" for test in tests))
    measure = look.effects[0].measure if look.effects else ""
    note = f"Without it: change of {measure} on the whole test set [95% over its items, this one seed]"
    return Table("", columns, tuple(rows), note if measure else "", text_columns=len(columns))


def change(effect: dict[str, Any]) -> str:
    """`-5.2 points [-7.4, -3.0]` of accuracy, or `+4.1% [+3.0%, +5.2%]` of perplexity."""
    accuracy = effect["measure"] == "accuracy"
    values = [effect["change"], *(effect["interval"] or ())]
    mean, *ends = [f"{100 * value:+.1f}" if accuracy else f"{100 * (value - 1):+.1f}%" for value in values]
    return mean + " points" * accuracy + (f" [{ends[0]}, {ends[1]}]" if ends else "")


def errors_lines(name: str, found: dict[str, Any], labels: Sequence[str]) -> list[str]:
    """A classifier's mistakes on one test set."""
    lines = errors_summary(name, found)
    lines += ["", *as_text(confusion_table("confusion", found["confusion"], labels, found["classes"]))]
    lines += ["", *calibration_lines(found["calibration"]), "", *mistake_lines(found["mistakes"])]
    return [*lines, "", *attribution_lines(found["telling"], labels)] if "telling" in found else lines


def errors_tables(name: str, found: dict[str, Any], labels: Sequence[str]) -> Iterator[Table]:
    """The same as tables."""
    yield confusion_table(f"{name}: confusion", found["confusion"], labels, found["classes"])
    mistakes = tuple(
        row(f"{each['confidence']:.1%}", each["guess"], each["true"], each["text"][:100]) for each in found["mistakes"]
    )
    if mistakes:
        columns = ("confidence", "guess", "true class", "text")
        yield Table(f"{name}: most confident mistakes", columns, mistakes, text_columns=4)
    words = found.get("telling", {}).get("leave_one_out", {})
    told = tuple(row(label, ", ".join(f"{e['word']} {e['mean']:+.2f}" for e in words[label])) for label in words)
    if told:
        title = f"{name}: words with the largest attributions (leave-one-out, nats of log-odds)"
        yield Table(title, ("class", "words"), told, text_columns=2)


def errors_summary(name: str, found: dict[str, Any]) -> list[str]:
    right = f"{found['accuracy']:.1%} right of {found['items']:,}{span(found['interval'], ', 95%')}"
    lines = [f"{plain(name)}: {right}; macro-F1 {found['macro_f1']:.1%}"]
    if copies := found["copies"]:
        occur = "item also occurs" if copies == 1 else "items also occur"
        lines.append(f"{copies:,} {occur} in the training set, exactly or nearly: there memory is tested")
        if clean := found["clean"]:
            accuracy = f"{clean['accuracy']:.1%} right{span(clean['interval'])}"
            error = f"calibration error (ECE) {clean['expected_error']:.3f}"
            lines.append(f"on the other {clean['items']:,}: {accuracy}, {error}")
    return lines


def span(interval: Sequence[float] | None, level: str = "") -> str:
    """` (45.1% to 52.0%)`; empty where too few items make one."""
    return "" if interval is None else f" ({interval[0]:.1%} to {interval[1]:.1%}{level})"


def calibration_lines(found: dict[str, Any]) -> list[str]:
    """The reliability curve as a table: where confidence and accuracy differ, the model misjudges itself."""
    rows = []
    for part in found["bins"]:
        if part["items"]:
            right = round(BAR * part["accuracy"])
            bar = "█" * right + "·" * (BAR - right)
            at = min(BAR - 1, int(BAR * part["confidence"]))
            span, bar = f"{part['low']:.0%} to {part['high']:.0%}", f"{bar[:at]}|{bar[at + 1 :]}"
            rows.append(row(span, part["items"], f"{part['confidence']:.1%}", f"{part['accuracy']:.1%}", bar))
    note = "Bars: share right; the stroke is the mean confidence, where a bar should end."
    gap = found["overconfidence"]
    return [
        *as_text(Table("", ("confidence", "items", "mean", "right", "reliability"), tuple(rows), note)),
        f"expected calibration error (ECE, {len(found['bins'])} bins of equal width) {found['expected_error']:.3f};"
        f" worst bin {found['worst_error']:.3f}; Brier score {found['brier']:.3f}",
        f"on average {'overconfident' if gap > 0 else 'underconfident'} by {abs(gap):.1%}",
    ]


def mistake_lines(mistakes: Sequence[dict[str, Any]]) -> list[str]:
    if not mistakes:
        return ["no mistakes"]
    lines = ["most confident mistakes:"]
    for mistake in mistakes:
        file = f"  ({plain(Path(mistake['place']).name)})" if mistake["place"] else ""
        guess = f"{mistake['confidence']:6.1%}{odds_text(mistake, mistakes)} for {plain(mistake['guess'])}"
        truth = f"{plain(mistake['true'])} ({mistake['share_of_truth']:.1%}{', a copy' * mistake['copy']})"
        lines.append(f"  {guess}, truth {truth}: {plain(mistake['text'])}{file}")
    return lines


def odds_text(mistake: dict[str, Any], mistakes: Sequence[dict[str, Any]]) -> str:
    """` (log-odds 9.3)` where some of the confidences round to 100.0%: what ranks them."""
    saturated = any(percent(each["confidence"]) == "100.0%" for each in mistakes)
    return f" (log-odds {mistake['log_odds']:.1f})" if saturated and "log_odds" in mistake else ""


def attribution_lines(found: dict[str, Any], labels: Sequence[str]) -> list[str]:
    lines = wrapped(
        f"words with the largest attributions: mean change of the answer's log-odds (nats) over {found['texts']:,}"
        f" texts; words that occur at least {found['least_times']} times",
        first="",
    )
    for label in labels:
        for key, name in ATTRIBUTIONS.items():
            words = ", ".join(f"{quoted(word['word'])} {word['mean']:+.2f}" for word in found[key][label])
            lines.append(f"  {plain(label)}, {name}: {words or 'none'}")
    return lines


def quoted(word: str) -> str:
    """A comma in a list of words needs its quotes."""
    return plain(word) if any(map(str.isalnum, word)) else f"'{plain(word)}'"


def colour_of(nats: float | None) -> str | None:
    """None: no colour."""
    return next((colour for least, colour in reversed(SCALE) if nats is not None and nats >= least), None)


def shaded(pieces: Sequence[Piece]) -> Text:
    """Text with a shade behind each piece: the deeper, the more surprising."""
    from rich.text import Text

    text = Text()
    for piece, nats in pieces:
        colour, word = colour_of(nats), piece.rstrip()
        text.append(word, style=f"black on {colour}" if colour else "dim" if nats is None else "")
        text.append(piece[len(word) :])
    return text


def shaded_html(pieces: Sequence[Piece]) -> str:
    """The same for a notebook."""
    spans = []
    for piece, nats in pieces:
        colour, told = colour_of(nats), "not counted" if nats is None else f"{nats:.2f} nats"
        style = f' style="background: {colour}; color: #000"' if colour else ""
        spans.append(f'<span title="{told}"{style}>{escape(plain(piece))}</span>')
    return f"<p>{''.join(spans)}</p>"


def plain_shaded(pieces: Sequence[Piece]) -> str:
    """`word/5.2`: each piece with its nats; a dash where nothing is counted, `␣` for a space that is a token."""
    return " ".join(f"{piece.strip() or '␣'}/{'-' if nats is None else f'{nats:.1f}'}" for piece, nats in pieces)


def legend() -> Text:
    from rich.text import Text

    text = Text("nats:  below 2 ")
    for least, colour in SCALE:
        text.append(f" {least:g}+ ", style=f"black on {colour}")
    return text
