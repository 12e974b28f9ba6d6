"""Where heads look, as lines for the terminal. Takes an album (`look/album.py`): plain numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairtrial.report.record_text import plain

SAYING = "Attention is where a head looked, not why the model decided."


def album_lines(album: Any) -> list[str]:
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
    wide = max(len(each.caption) for each in album.portraits) + 2
    lines = [f"layer head  {'where it looks':<{wide}}" + "".join(f"{'without it: ' + test:<27}" for test in tests)]
    for each in album.portraits:
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
