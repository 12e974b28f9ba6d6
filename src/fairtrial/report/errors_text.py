"""A classifier's mistakes as lines of plain text, from plain values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.report.record_text import plain

WAYS = {"gradient_times_input": "gradient x input", "leave_one_out": "leave-one-out"}
BAR = 20


def errors_lines(name: str, found: dict[str, Any], labels: Sequence[str]) -> list[str]:
    """All about one test set."""
    low, high = found["interval"]
    lines = [
        f"{plain(name)}: {found['accuracy']:.1%} right of {found['items']:,} ({low:.1%} to {high:.1%}, 95%);"
        f" macro-F1 {found['macro_f1']:.1%}",
        *copies_lines(found),
        "",
        *confusion_lines(found, labels),
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


def confusion_lines(found: dict[str, Any], labels: Sequence[str]) -> list[str]:
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
        for way, spoken in WAYS.items():
            words = ", ".join(f"{plain(each['word'])} {each['mean']:+.2f}" for each in found[way][label])
            lines.append(f"  {plain(label)}, {spoken}: {words or 'none'}")
    return lines


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
