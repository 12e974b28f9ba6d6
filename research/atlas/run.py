"""Every built-in idea against the usual transformer, in four studies that are judged as one family of comparisons."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

from matplotlib.figure import Figure

import fairtrial as ft
from pages import COLOURS, GREY, WORDS, outcomes_of, records_section, save_figure, table, with_interval, write_sections

HERE = Path(__file__).parent
STUDIES = {"lm1b": "lm1b", "speeches-classify": "sotu", "speeches-lm": "sotu", "sst2": "sst2"}  # -> its data
BASELINE = "learned"
MATCHED = " (same parameters)"
Rows = dict[str, dict[tuple[str, str], ft.Comparison]]  # idea -> study, test set -> comparison


def main() -> None:
    found = {name: outcomes_of(HERE, name, HERE / f"{name}.toml", data) for name, data in STUDIES.items()}
    outcomes = {name: each for name, each in found.items() if each is not None}
    verdict = ft.Outcomes.join("atlas", outcomes).verdict()
    places = [(study, name) for study, task in verdict.tasks.items() for name in task.sets]
    plain: Rows = {}
    matched: Rows = {}
    for study, task in verdict.tasks.items():
        for row in task.comparisons:
            idea = row.variant.removesuffix(MATCHED).removeprefix(f"{BASELINE}+")
            (matched if row.variant.endswith(MATCHED) else plain).setdefault(idea, {})[study, row.test_set] = row
    save_figure(draw(places, plain, matched), HERE / "differences.svg")
    titles = [f"{study}, {name}" if len(verdict.tasks[study].sets) > 1 else study for study, name in places]
    write_sections(
        HERE / "README.md",
        {
            "In short": in_short(plain),
            "Every idea, at the equal recipe": ideas_table(verdict, places, titles, plain),
            "At the baseline's budget": matched_tables(places, titles, plain, matched),
            "Beside counting": counting_table(verdict),
            "What the papers claimed": claims_table(plain),
            "Records": records_section(found.values(), [name for name, each in found.items() if each is None]),
        },
    )


def answer(rows: dict[tuple[str, str], ft.Comparison]) -> str:
    """Over all studies: what an idea does where anything was decided."""
    kinds = {row.verdict for row in rows.values()}
    if {ft.VerdictKind.BETTER, ft.VerdictKind.WORSE} <= kinds:
        return "mixed"
    order = (ft.VerdictKind.BETTER, ft.VerdictKind.WORSE, ft.VerdictKind.UNDECIDED, ft.VerdictKind.EQUIVALENT)
    return next((kind.value for kind in order if kind in kinds), ft.VerdictKind.NOT_COMPARABLE.value)


def in_short(plain: Rows) -> str:
    meanings = {
        "better": "**Better** in at least one study and worse in none",
        "worse": "**Worse** in at least one study and better in none",
        "mixed": "**Better here and worse there**",
        "equivalent": "**Equivalent** in every study",
        "undecided": "**Undecided** at this scale",
        "not_comparable": "Not comparable",
    }
    lines = []
    for kind, meaning in meanings.items():
        names = [idea for idea, rows in plain.items() if answer(rows) == kind]
        lines += [f"- {meaning}: {', '.join(names) or 'none'}."]
    figure = "![differences and their 95% intervals, by study](differences.svg)"
    legend = (
        f"A row for each idea: the difference from `{BASELINE}` with its 95% interval, better to the right. Green is"
        " better and red is worse after correction, blue is equivalent, grey is undecided; hollow marks are at the"
        " baseline's number of parameters."
    )
    return "\n".join([*lines, "", figure, "", legend])


def cell(row: ft.Comparison | None) -> str:
    return "–" if row is None else f"{WORDS[row.verdict]} {with_interval(row.shown)}"


def ideas_table(verdict: ft.Verdict, places: list[tuple[str, str]], titles: list[str], plain: Rows) -> str:
    changes = {entry.name: entry.changes for entry in ft.catalogue().entries}
    rows = []
    for idea, found in plain.items():
        name = idea.split(" ")[0]
        costs = [ratios(verdict.tasks[study], next(iter(found.values())).variant) for study in {s for s, _ in found}]
        rows.append(
            [changes.get(name, "other"), f"**{idea}**", *(cell(found.get(place)) for place in places), *spans(costs)]
        )
    rows.sort(
        key=lambda cells: list(dict.fromkeys(changes.values())).index(cells[0]) if cells[0] in changes.values() else 99
    )
    lead = (
        "Differences in points of accuracy, or in per cent of perplexity (lower is better). The last columns:"
        " parameters and time of a training step, relative to the baseline's."
    )
    return f"{lead}\n\n{table(['changes', 'idea', *titles, 'parameters', 'time'], rows)}"


def ratios(task: ft.TaskVerdict, variant: str) -> list[float | None]:
    own, base = task.cost.get(variant), task.cost.get(BASELINE)
    pairs = [(getattr(own, name, None), getattr(base, name, None)) for name in ("parameters", "seconds_per_step")]
    return [ours / theirs if ours and theirs else None for ours, theirs in pairs]


def spans(costs: list[list[float | None]]) -> list[str]:
    columns = []
    for values in zip(*costs, strict=True):
        known = sorted(value for value in values if value)
        low, high = (f"{known[0]:.2f}", f"{known[-1]:.2f}") if known else ("–", "–")
        columns.append(low if low == high else f"{low} to {high}")
    return columns


def matched_tables(places: list[tuple[str, str]], titles: list[str], plain: Rows, matched: Rows) -> str:
    text = "An idea with more or fewer parameters is trained again with a narrower or wider feed-forward layer."
    rows = [[f"**{idea}**", *(cell(found.get(place)) for place in places)] for idea, found in matched.items()]
    changed = [
        f"- {idea} ({study}, {name}): {plain[idea][study, name].verdict.value}, at the same budget {row.verdict.value}"
        for idea, found in matched.items()
        for (study, name), row in found.items()
        if row.verdict != plain[idea][study, name].verdict
    ]
    more = "\n".join(["Verdicts that change:", "", *changed]) if changed else "No verdict changes."
    return f"{text}\n\n{table(['idea', *titles], rows)}\n\n{more}"


def counting_table(verdict: ft.Verdict) -> str:
    rows = [
        [study, row.test_set, row.baseline, with_interval(row.shown)]
        for study, task in verdict.tasks.items()
        for row in task.baseline_comparisons
        if row.variant == BASELINE and task.sets[row.test_set].subset == row.subset
    ]
    columns = ["study", "test set", "model", "difference"]
    return f"`{BASELINE}` minus models that need no network:\n\n{table(columns, rows)}"


def claims_table(plain: Rows) -> str:
    claims = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))
    papers = {entry.name: " ".join(f"<{paper}>" for paper in entry.papers) for entry in ft.catalogue().entries}
    rows = []
    for idea, found in plain.items():
        name = idea.split(" ")[0]
        kinds = Counter(row.verdict.value.replace("_", " ") for row in found.values())
        seen = ", ".join(f"{kind} ({count} of {kinds.total()})" for kind, count in kinds.most_common())
        if name in claims:
            rows.append([f"**{idea}**", papers.get(name, ""), claims[name], seen])
    lead = "At their scale, which is far from this one; both may be true."
    return f"{lead}\n\n{table(['idea', 'paper', 'claimed', 'here'], rows)}"


def draw(places: list[tuple[str, str]], plain: Rows, matched: Rows) -> Figure:
    figure = Figure(figsize=(2.1 + 2.2 * len(places), 0.22 * len(plain) + 1.2), facecolor="white", layout="constrained")
    panels = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for axis, place in zip(panels, places, strict=True):
        axis.axvline(0, color="#333333", linewidth=0.8)
        unit = ""
        for y, idea in enumerate(plain):
            for rows, down, fill in ((plain, 0.0, "full"), (matched, 0.3, "none")):
                row = rows.get(idea, {}).get(place)
                if row is None or row.shown.low is None:
                    continue
                colour, unit = COLOURS.get(row.verdict, GREY), row.metric.name
                axis.plot([row.shown.low, row.shown.high], [y + down] * 2, "-", color=colour, linewidth=1.2)
                axis.plot([row.shown.estimate], [y + down], "o", color=colour, markersize=4, fillstyle=fill)
        if unit == "perplexity":
            axis.invert_xaxis()  # lower is better
        axis.set_xlabel("perplexity, %" if unit == "perplexity" else "accuracy, points")
        axis.set_title(", ".join(place), loc="left", fontsize=8)
        axis.grid(axis="x", color="#e5e5e5")
    panels[0].set_yticks(range(len(plain)), list(plain))
    panels[0].set_ylim(len(plain) - 0.4, -0.6)
    return figure


if __name__ == "__main__":
    main()
