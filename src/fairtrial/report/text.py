"""Text with a shade behind each piece: the stronger, the more surprising. For terminals, and in plain letters.

A record as lines of plain text.

Baselines as a table for the terminal.

The audit of a data set as a table for the terminal.

A mixture as lines for the terminal.

A parameter ledger as a table for the terminal, Markdown, LaTeX or CSV. It takes plain values and knows no model.

Where heads look, as lines for the terminal. Takes an album (`look/album.py`): plain numbers.

A classifier's mistakes as lines of plain text, from plain values.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.finding import Finding, summary, table_lines
from fairtrial.record import Record
from fairtrial.report.charts import Curve, curves_of, trained_seconds
from fairtrial.report.words import KINDS, describe_result, spoken_parts, spoken_time

if TYPE_CHECKING:
    from rich.text import Text


Piece = tuple[str, float | None]  # text, nats; None: not counted

# nats from which a colour is used: black on ever deeper orange, so that it reads on light and dark terminals
SCALE = ((2.0, "#ffe8cc"), (4.0, "#ffcf99"), (6.0, "#ffb066"), (8.0, "#ff8a3d"), (10.0, "#f4622a"))


def colour_of(nats: float | None) -> str | None:
    """None: no colour."""
    found = None
    for least, colour in SCALE:
        if nats is not None and nats >= least:
            found = colour
    return found


def shaded(pieces: Sequence[Piece]) -> Text:
    from rich.text import Text

    text = Text()
    for piece, nats in pieces:
        colour = colour_of(nats)
        word = piece.rstrip()
        text.append(word, style=f"black on {colour}" if colour else "dim" if nats is None else "")
        text.append(piece[len(word) :])
    return text


def plain_shaded(pieces: Sequence[Piece]) -> str:
    """`word/5.2`: each piece with its nats; a dash where nothing is counted, `␣` for a space that is a token."""
    told = ((piece.strip() or "␣", "-" if nats is None else f"{nats:.1f}") for piece, nats in pieces)
    return " ".join(f"{word}/{nats}" for word, nats in told)


def legend() -> Text:
    from rich.text import Text

    text = Text("nats: ")
    text.append(" below 2 ")
    for least, colour in SCALE:
        text.append(f" {least:g}+ ", style=f"black on {colour}")
    return text


MOST_ROWS = 21
SPARKS = "▁▂▃▄▅▆▇█"


def record_lines(record: Record) -> list[str]:
    recipe, trial = record.recipe, record.trial
    training, shape = recipe.training, recipe.shape
    kind = KINDS[recipe.task]
    documents = ", ".join(f"{count:,} {name}" for name, count in trial["documents"].items())
    lines = [
        f"{record.folder}: {kind}, recipe {recipe.name or 'unnamed'!r}, seed {trial['seed']}",
        f"  data      {recipe.data.source} ({documents})",
        f"  tokens    {recipe.tokens.kind}, vocabulary {trial['vocabulary']:,}",
        f"  shape     {shape.layers} layers, {shape.heads} heads, width {shape.width}, feed-forward {shape.hidden},"
        f" length {shape.length}, dropout {shape.dropout:g}"
        + (f" (of attention weights {shape.attention_dropout:g})" if shape.attention_dropout else ""),
        f"  parts     {spoken_parts(recipe)}",
        f"  training  {training.duration}, batch {training.batch}, {training.optimizer},"
        f" learning rate {training.learning_rate:g}",
    ]
    if record.complete:
        lines.append(f"  size      {record.result['parameters']:,} parameters")
    lines.append(f"  took      {spoken_time(trained_seconds(record.clock()))} in all")
    lines += [f"  note      {note}" for note in trial["notes"]]
    if trial.get("cite"):
        lines.append(f"  cite      {trial['cite']}")
    lines += ["", *curve_table(curves_of(record.events()))]
    if record.complete:
        lines += ["", *describe_result(record.result), *confusion_lines(record.result, trial["labels"])]
    else:
        lines += ["", f"not finished; go on with: fairtrial resume {record.folder}"]
    environment = trial["environment"]
    lines += [
        "",
        f"fingerprints: recipe {trial['recipe']}, code {trial['code']}, data"
        f" {' '.join(f'{name}:{digest[:8]}' for name, digest in sorted(trial['data'].items())[:6])}",
        f"environment: Python {environment['python']}, torch {environment['torch']},"
        f" {environment['threads']} thread(s), {environment['system']} {environment['machine']}",
    ]
    return [plain(line) for line in lines]


def plain(line: str) -> str:
    """Without control characters: a stranger's record must not command the terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", line)


def curve_table(curves: list[Curve]) -> list[str]:
    """One row for each scored step, one column for each split, a spark line on top."""
    if not curves:
        return ["no scores yet"]
    steps = sorted({step for curve in curves for step, _ in curve.points})
    shown = steps if len(steps) <= MOST_ROWS else [steps[round(place * (len(steps) - 1) / 20)] for place in range(21)]
    values = [dict(curve.points) for curve in curves]
    widths = [max(12, len(curve.name) + 2) for curve in curves]
    unit = curves[0].unit
    lines = [f"curves ({unit}):", "  step    " + "".join(f"{c.name:>{w}}" for c, w in zip(curves, widths, strict=True))]
    lines.append("          " + "".join(f"{spark(c):>{w}}" for c, w in zip(curves, widths, strict=True)))
    for step in shown:
        cells = (value.get(step) for value in values)
        row = "".join(
            f"{'' if cell is None else unit_text(cell, unit):>{w}}" for cell, w in zip(cells, widths, strict=True)
        )
        lines.append(f"  {step:<8}{row}")
    return lines


def unit_text(value: float, unit: str) -> str:
    return f"{value:.1%}" if unit == "accuracy" else f"{value:.1f}"


def spark(curve: Curve) -> str:
    """At most ten blocks that rise and fall with the curve."""
    values = [value for _, value in curve.points if math.isfinite(value)]
    if not values:
        return ""
    chosen = [values[round(place * (len(values) - 1) / 9)] for place in range(10)] if len(values) > 10 else values
    low, high = min(chosen), max(chosen)
    return "".join(SPARKS[int((value - low) / (high - low or 1) * 7)] for value in chosen)


def confusion_lines(result: dict[str, Any], labels: list[str]) -> list[str]:
    """Rows are true classes, columns guesses."""
    lines = []
    for name, score in result["tests"].items():
        if "confusion" in score:
            width = max(6, *(len(label) + 2 for label in labels))
            lines.append(f"  confusion on {name} (rows: true, columns: guessed)")
            lines.append("  " + " " * width + "".join(f"{label:>{width}}" for label in labels))
            for label, row in zip(labels, score["confusion"], strict=True):
                lines.append(f"  {label:<{width}}" + "".join(f"{count:>{width}}" for count in row))
    return lines


WAYS = ("all", "clean", "contaminated")
WIDTH = 25
FEW = 5  # documents; an interval over fewer says nothing


def baseline_lines(found: dict[str, Any]) -> Iterator[str]:
    """`found`: what `fairtrial baseline --json` prints for one task."""
    kind = "accuracy" if found["task"] == "classify" else "perplexity"
    yield (
        f"{found['task']}: {found['source']}, recipe {found['recipe'] or 'of your own'}, seed {found['seed']};"
        f" fitted on {found['documents']['train']:,} documents"
    )
    for name, copies in found["sets"].items():
        yield f"{name}: {spoken_copies(copies)}"
        ways = [way for way in WAYS if way == "all" or copies["exact"] + copies["near"]]
        ways = [way for way in ways if way != "clean" or copies["clean"]]
        yield f"  {kind:<22}" + "".join(f"{way:<{WIDTH}}" for way in ways).rstrip()
        for baseline, sets in found["baselines"].items():
            cells = [cell(sets[name][way]) if way in sets[name] else "" for way in ways]
            yield f"  {baseline:<22}" + "".join(f"{each:<{WIDTH}}" for each in cells).rstrip()
    yield "  intervals: 95% over test items; a transformer that does not beat these does no better than counting words"


def spoken_copies(copies: dict[str, Any]) -> str:
    """`553 of 750 test items (73.7%) also occur in the training set (551 exact, 2 near); 197 are clean`"""
    dirty = copies["exact"] + copies["near"]
    if not dirty:
        return f"none of {copies['items']:,} test items occurs in the training set"
    return (
        f"{dirty:,} of {copies['items']:,} test items ({copies['share']:.1%}) also occur in the training set"
        f" ({copies['exact']:,} exact, {copies['near']:,} near); {copies['clean']:,} are clean"
    )


def cell(score: dict[str, Any]) -> str:
    if "accuracy" in score:
        low, high = score["interval"]
        return f"{score['accuracy']:.1%} [{low:.1%}, {high:.1%}]"
    if score["perplexity"] is None:
        return ""
    interval = score["interval"] if score["items"] >= FEW else None
    return f"{score['perplexity']:.1f}" + ("" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}]")


def audit_lines(audit: dict[str, Any], width: int = 120) -> Iterator[str]:
    """`audit`: what `audit_data` found for one task."""
    findings = [Finding.from_dict(finding) for finding in audit["findings"]]
    recipe = audit["recipe"] or "of your own"
    yield f"{audit['task']}: {audit['source']} (recipe {recipe}: {spoken_documents(audit['documents'])})"
    for name, copies in audit["sets"].items():
        yield f"  {name}: {spoken_copies(copies)}"
    yield ""
    yield from table_lines(findings, width, explain_passed=False)
    for note in audit["notes"]:
        yield f"  note: {note}"
    yield from [""] * bool(audit["notes"])
    repairable = any(finding.verdict == "RED" and finding.id in ("D1", "D1n") for finding in findings)
    hint = f" (repair it with: fairtrial clean --data {audit['source']} --out FOLDER)" if repairable else ""
    yield summary(findings) + hint


def spoken_documents(documents: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in documents.items() if count)


NAME, CELL = 34, 27


def mix_lines(found: dict[str, Any]) -> Iterator[str]:
    """`found`: what `fairtrial mix --json` prints."""
    kind = "p = sum of weight x p" if found["metric"] == "perplexity" else "p = product of p to the power of its weight"
    count = len(found["chosen_on"])
    yield f"{found['task']}: a mixture, {kind}; weights chosen on the validation of {count} record{'s' * (count > 1)}"
    for each in found["more"]:
        left_out = f"{each['dropped']:,} left out that stand in scored sets"
        yield f"with {each['name']}: {each['documents']:,} documents; {left_out}"
    yield f"  {'':<{NAME}}{'weight':<10}{'validation':<14}".rstrip()
    for model, figures in found["validation"].items():
        weight = f"{found['weights'][model]:.3f}" if model in found["weights"] else ""
        yield f"  {model:<{NAME}}{weight:<10}{shown(found['metric'], figures['mean']):<14}".rstrip()
    for model, weight in found["weights"].items():
        if model not in found["validation"]:
            yield f"  {model:<{NAME}}{weight:.3f}"
    for name, models in found["tests"].items():
        ways = list(next(iter(models.values())))
        seeds = len(found["records"])
        yield f"{name}: {found['metric']}, {'mean of ' * (seeds > 1)}{seeds} seed{'s' * (seeds > 1)}"
        yield (f"  {'':<{NAME}}" + "".join(f"{way:<{CELL}}" for way in ways)).rstrip()
        for model, by_way in models.items():
            yield (
                f"  {model:<{NAME}}" + "".join(f"{mixture_cell(found['metric'], by_way[way]):<{CELL}}" for way in ways)
            ).rstrip()
    if found["tests"]:
        yield "  intervals: 95% for a new seed and new test items; no test set had a part in the choice of the weights"


def shown(metric: str, value: float) -> str:
    return f"{value:.1f}%" if metric == "accuracy" else f"{value:.1f}"


def mixture_cell(metric: str, score: dict[str, Any]) -> str:
    if score["mean"] is None:
        return ""
    text = shown(metric, score["mean"])
    if score["low"] is None:
        return text
    return f"{text} [{shown(metric, score['low'])}, {shown(metric, score['high'])}]"


HEADER = ("component", "formula", "parameters", "the reports' way")
COST_HEADER = ("component", "formula", "operations")
FORMATS = ("text", "markdown", "latex", "csv")

LedgerRow = tuple[str, str, int, int]  # component, formula, count, bias-free count
CostRow = tuple[str, str, int]  # component, formula, operations


def ledger_table(rows: Sequence[LedgerRow], kind: str) -> str:
    """All rows and their sums."""
    total = ("total", "", sum(row[2] for row in rows), sum(row[3] for row in rows))
    return table(HEADER, [*rows, total], kind)


def cost_table(rows: Sequence[CostRow], kind: str) -> str:
    return table(COST_HEADER, [*rows, ("total", "", sum(row[2] for row in rows))], kind)


def table(header: Sequence[str], rows: Sequence[Sequence[str | int]], kind: str) -> str:
    """Two columns of words, then numbers; the last row is a sum."""
    if kind == "csv":
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])
        return file.getvalue()
    cells = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    return {"text": text, "markdown": markdown, "latex": latex}[kind](header, cells)


def text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    wide = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]

    def line(row: Sequence[str]) -> str:
        words = [
            cell.ljust(size) if place < 2 else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(row, wide, strict=True))
        ]
        return "  ".join(words).rstrip()

    rule = "-" * (sum(wide) + 2 * (len(wide) - 1))
    return "\n".join((line(header), rule, *map(line, rows[:-1]), rule, line(rows[-1]))) + "\n"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"

    rule = "|" + "|".join("---" if place < 2 else "---:" for place in range(len(header))) + "|"
    last = [f"**{cell}**" if cell else "" for cell in rows[-1]]
    return "\n".join((line(header), rule, *map(line, rows[:-1]), line(last))) + "\n"


def latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A booktabs table; `\\usepackage{booktabs}` goes before it."""
    columns = "ll" + "r" * (len(header) - 2)

    def line(row: Sequence[str]) -> str:
        return " & ".join(escape(cell) if place != 1 else mathematics(cell) for place, cell in enumerate(row)) + r" \\"

    body = [line(row) for row in rows]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(map(escape, header)) + r" \\", r"\midrule"]
    return "\n".join([*lines, *body[:-1], r"\midrule", body[-1], r"\bottomrule", r"\end{tabular}"]) + "\n"


def mathematics(formula: str) -> str:
    if not formula or not formula[0].isdigit():
        return escape(formula)
    sums, comma, words = formula.partition(", ")
    typeset = sums.replace("×", r"\times").replace(",", "{,}")
    return f"${typeset}$" + (f", {escape(words)}" if comma else "")


def escape(words: str) -> str:
    for letter in "\\&%$#_{}":
        words = words.replace(letter, r"\textbackslash " if letter == "\\" else f"\\{letter}")
    return words


SAYING = "Attention is where a head looked, not why the model decided."


def look_lines(album: Any) -> list[str]:
    lines = []
    for drawn in album.drawn:
        lines.append(plain(drawn.text if len(drawn.text) <= 100 else drawn.text[:99] + "…"))
        lines += [f"  notice: {plain(text)}" for text in notices_of(drawn.trained)]
        for name, maps in (("trained", drawn.trained), (album.stage, drawn.untrained)):
            lines += [f"  {name:<11}{check_line(check)}" for check in maps.checks]
    return [*lines, "", *head_lines(album), "", SAYING]


def check_line(check: Any) -> str:
    value = f"{check.value:.1e}" if check.value else "0"
    return f"{'yes' if check.passed else 'NO':<4}{check.name} ({check.meaning}: {value})"


def notices_of(maps: Any) -> list[str]:
    """What a reader of these maps must know."""
    unknown = ", ".join(repr(word) for word in dict.fromkeys(maps.unknown))
    return [text for text in (maps.cut, unknown and f"unknown to the model, which reads <unk>: {unknown}") if text]


def head_lines(album: Any) -> list[str]:
    """One line for each head: its caption, and what the score does without it."""
    tests = list(dict.fromkeys(effect.test for effect in album.effects))
    wide = max(len(each.caption) for each in album.heads) + 2
    lines = [f"layer head  {'where it looks':<{wide}}" + "".join(f"{'without it: ' + test:<27}" for test in tests)]
    for each in album.heads:
        mine = [effect for effect in album.effects if (effect.layer, effect.head) == (each.layer, each.head)]
        told = "".join(f"{change(asdict(effect)):<27}" for effect in mine)
        lines.append(f"{each.layer:>5} {each.head:>4}  {plain(each.caption):<{wide}}{told}")
    if album.effects:
        what = "accuracy" if album.effects[0].measure == "accuracy" else "perplexity"
        lines.append(f"without it: change of {what} on the whole test set [95% over its items, this one seed]")
    return [line.rstrip() for line in lines]


def change(effect: dict[str, Any]) -> str:
    """`-5.2 points [-7.4, -3.0]` of accuracy, or `+4.1% [+3.0%, +5.2%]` of perplexity."""
    interval = effect["interval"]
    if effect["measure"] == "accuracy":
        told = f"{100 * effect['change']:+.1f} points"
        return told + (f" [{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]" if interval else "")
    told = f"{100 * (effect['change'] - 1):+.1f}%"
    return told + (f" [{100 * (interval[0] - 1):+.1f}%, {100 * (interval[1] - 1):+.1f}%]" if interval else "")


ERROR_FORMATS = {"gradient_times_input": "gradient x input", "leave_one_out": "leave-one-out"}
BAR = 20


def errors_lines(name: str, found: dict[str, Any], labels: Sequence[str]) -> list[str]:
    """All about one test set."""
    low, high = found["interval"]
    lines = [
        f"{plain(name)}: {found['accuracy']:.1%} right of {found['items']:,} ({low:.1%} to {high:.1%}, 95%);"
        f" macro-F1 {found['macro_f1']:.1%}",
        *copies_lines(found),
        "",
        *confusion_table_lines(found, labels),
        "",
        *calibration_lines(found["calibration"]),
        "",
        *mistake_lines(found["mistakes"]),
    ]
    if "telling" in found:
        lines += ["", *telling_lines(found["telling"], labels)]
    return lines


def copies_lines(found: dict[str, Any]) -> list[str]:
    """What a score is worth where test items stand in the training text."""
    if not found["copies"]:
        return []
    known = f"{found['copies']:,} of them also stand in the training text, word for word or nearly so"
    told = f"{known}: there memory is tested"
    if found["clean"] is None:
        return [told]
    clean = found["clean"]
    low, high = clean["interval"]
    return [
        told,
        f"on the other {clean['items']:,}: {clean['accuracy']:.1%} right ({low:.1%} to {high:.1%}),"
        f" calibration error (ECE) {clean['expected_error']:.3f}",
    ]


def confusion_table_lines(found: dict[str, Any], labels: Sequence[str]) -> list[str]:
    wide = max(len("true class"), *(len(plain(label)) for label in labels))
    column = max(7, *(len(plain(label)) for label in labels))
    head = "  ".join(f"{plain(label):>{column}}" for label in labels)
    lines = [f"{'true class':<{wide}}  {head}    precision   recall       F1   (columns: guessed class)"]
    for label, counts, score in zip(labels, found["confusion"], found["classes"], strict=True):
        told = "  ".join(f"{count:>{column},}" for count in counts)
        precision, recall = percent(score["precision"]), percent(score["recall"])
        lines.append(f"{plain(label):<{wide}}  {told}    {precision:>9}  {recall:>7}  {score['f1']:>7.1%}")
    return lines


def calibration_lines(found: dict[str, Any]) -> list[str]:
    """The reliability curve as a table: where confidence and accuracy part, the model misjudges itself."""
    lines = [f"{'confidence':<14}{'items':>7}  {'mean':>6}  {'right':>6}  reliability"]
    for each in found["bins"]:
        if not each["items"]:
            continue
        right = round(BAR * each["accuracy"])
        line = "█" * right + "·" * (BAR - right)
        at = min(BAR - 1, int(BAR * each["confidence"]))
        line = line[:at] + "|" + line[at + 1 :]
        lines.append(
            f"{each['low']:>4.0%} to {each['high']:<6.0%}{each['items']:>7,}  {each['confidence']:>6.1%}"
            f"  {each['accuracy']:>6.1%}  {line}"
        )
    lines.append("bars: share right; the stroke stands at the mean confidence, where a bar should end")
    lines.append(
        f"expected calibration error (ECE, {len(found['bins'])} bins of equal width) {found['expected_error']:.3f};"
        f" worst bin {found['worst_error']:.3f}; Brier score {found['brier']:.3f}"
    )
    gap = found["overconfidence"]
    word = "surer than right" if gap > 0 else "more often right than sure"
    lines.append(f"on average {abs(gap):.1%} {word}")
    return lines


def mistake_lines(mistakes: Sequence[dict[str, Any]]) -> list[str]:
    if not mistakes:
        return ["no mistakes"]
    lines = ["most confident mistakes:"]
    for each in mistakes:
        place = f"  ({plain(Path(each['place']).name)})" if each["place"] else ""
        lines.append(
            f"  {each['confidence']:6.1%} for {plain(each['guess'])}, in truth {plain(each['true'])}"
            f" ({each['share_of_truth']:.1%}{', a copy' if each['copy'] else ''}): {plain(each['text'])}{place}"
        )
    return lines


def telling_lines(found: dict[str, Any], labels: Sequence[str]) -> list[str]:
    lines = [
        f"most telling words, by mean change of the answer's log-odds (nats), over {found['texts']:,} texts;"
        f" words that stand there at least {found['least_times']} times:"
    ]
    for label in labels:
        for way, spoken in ERROR_FORMATS.items():
            words = ", ".join(f"{plain(each['word'])} {each['mean']:+.2f}" for each in found[way][label])
            lines.append(f"  {plain(label)}, {spoken}: {words or 'none'}")
    return lines


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
