"""What the scripts of research/ share: studies whose outcomes are kept, and pages whose sections are written anew.

A study is run in `research/NAME/runs/`, which is not in the repository. The outcomes of its trials are kept in
`research/NAME/outcomes/`: once they are there, a page is written from them without training."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fairtrial as ft

WORDS = {
    ft.VerdictKind.BETTER: "**better**",
    ft.VerdictKind.WORSE: "**worse**",
    ft.VerdictKind.EQUIVALENT: "equivalent",
    ft.VerdictKind.UNDECIDED: "undecided",
    ft.VerdictKind.NOT_COMPARABLE: "not comparable",
}
COLOURS = {ft.VerdictKind.BETTER: "#1a7a3c", ft.VerdictKind.WORSE: "#b2182b", ft.VerdictKind.EQUIVALENT: "#2166ac"}
GREY = "#777777"


def find_data(name: str) -> str | None:
    """A data set by name: the embedded speeches, or a folder below what FAIRTRIAL_DATA names; None: it is not there."""
    if name == "sotu":
        return name
    place = os.environ.get("FAIRTRIAL_DATA")
    return str(Path(place) / name) if place and (Path(place) / name).is_dir() else None


def outcomes_of(
    folder: Path, name: str, source: Path | None = None, data: str = "sotu", **how: Any
) -> ft.Outcomes | None:
    """Of a study, from its stored file; otherwise it is run, or continued, and stored. None: its data are missing.
    `how`: as for `ft.study`."""
    stored = folder / "outcomes" / f"{name}.npz"
    if not stored.is_file():
        place = find_data(data)
        if place is None:
            print(f"{name}: left out, no folder {data}/ in what FAIRTRIAL_DATA names")
            return None
        study = ft.study(source=source, data=place, out=folder / "runs" / name, **how)
        stored.parent.mkdir(exist_ok=True)
        study.outcomes.save(stored, exact=False)
    return ft.Outcomes.load(stored)


def write_sections(page: Path, sections: Mapping[str, str]) -> None:
    """Put these texts below the headings of their names; all else on the page stays. A heading that is missing is added
    before the last one."""
    text = page.read_text(encoding="utf-8")
    for title, content in sections.items():
        heading = re.search(rf"(?m)^(#+) {re.escape(title)}$", text)
        if heading is None:
            last = text.rindex("\n## ")
            text = f"{text[:last]}\n## {title}\n\n{content.strip()}\n{text[last:]}"
            continue
        following = re.compile(rf"(?m)^#{{1,{len(heading[1])}}} ").search(text, heading.end())
        end = following.start() if following else len(text)
        text = f"{text[: heading.end()]}\n\n{content.strip()}\n\n{text[end:]}"
    page.write_text(text.rstrip() + "\n", encoding="utf-8", newline="\n")


def records_section(outcomes: Iterable[ft.Outcomes | None], missing: Sequence[str] = ()) -> str:
    found = [each for each in outcomes if each is not None]
    trials = sum(
        len(next(iter(sets.values())).seeds)
        for each in found
        for task in each.tasks.values()
        for sets in task.variants.values()
    )
    text = (
        f"Made by fairtrial {ft.__version__} from {trials:,} trials. The outcome of every test item of every trial is"
    )
    text += " in `outcomes/`, and `run.py` writes this page from there without training."
    return text + "".join(f"\n\nLeft out, because its data are missing: {name}." for name in missing)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def with_interval(value: ft.Interval, *, sign: bool = True, digits: int = 1) -> str:
    """`-0.5 [-5.3, +4.3]`"""
    if value.estimate is None:
        return "–"
    form = f"{'+' if sign else ''},.{digits}f"
    ends = "" if value.low is None or value.high is None else f" [{value.low:{form}}, {value.high:{form}}]"
    return f"{value.estimate:{form}}{ends}"


def holm(values: Sequence[float]) -> list[float]:
    """P-values, corrected so that the chance of even one false alarm stays at the level (Holm 1979)."""
    order = sorted(range(len(values)), key=lambda number: values[number])
    adjusted, largest = [1.0] * len(values), 0.0
    for rank, number in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[number]))
        adjusted[number] = largest
    return adjusted


def save_figure(figure: Any, path: Path) -> None:
    """The same bytes for the same numbers."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "fairtrial"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
