"""Built-in ideas against two references, with a learning rate tuned for each: a study of language models, judged by the
mean of its test sets. The comparisons with both references are one family."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

import fairtrial as ft
from pages import COLOURS, GREY, WORDS, outcomes_of, records_section, save_figure, table, with_interval, write_sections

HERE = Path(__file__).parent
STUDIES = {"speeches-lm": "sotu"}  # -> its data
REFERENCES = ("learned", "none")
Rows = dict[str, dict[str, ft.Comparison]]  # idea -> study and reference -> comparison


def main() -> None:
    found = {name: outcomes_of(HERE, name, HERE / f"{name}.toml", data) for name, data in STUDIES.items()}
    outcomes = {name: each for name, each in found.items() if each is not None}
    verdict = against_both(outcomes)
    rows: Rows = {}
    for place, task in verdict.tasks.items():
        for row in task.comparisons:
            rows.setdefault(idea_of(row.variant), {})[place] = row
    save_figure(draw(list(verdict.tasks), rows), HERE / "differences.svg")
    write_sections(
        HERE / "README.md",
        {
            "The answer": answers(verdict, rows),
            "Every idea": ideas_table(verdict, rows),
            "Kneser-Ney": counting_table(verdict),
            "Learning rates": rates_table(verdict),
            "What limits these verdicts": limits(verdict),
            "What the papers claimed": claims_table(rows),
            "Records": records_section(found.values(), [name for name, each in found.items() if each is None]),
        },
    )


def against_both(outcomes: dict[str, ft.Outcomes]) -> ft.Verdict:
    """Each study twice, once with each reference as its baseline; all comparisons are one family."""
    asked = {}
    for study, own in outcomes.items():
        for reference in REFERENCES:
            tasks = {
                name: replace(task, baseline=reference)
                for name, task in own.tasks.items()
                if reference in task.variants
            }
            asked[f"{study} against {reference}"] = ft.Outcomes(study, tasks)
    return ft.Outcomes.join("atlas", {name: each for name, each in asked.items() if each.tasks}).verdict()


def idea_of(variant: str) -> str:
    return variant.removeprefix("learned+")


def answers(verdict: ft.Verdict, rows: Rows) -> str:
    lines = []
    for place, task in verdict.tasks.items():
        told = []
        for kind in ft.VerdictKind:
            names = [idea_of(row.variant) for row in task.comparisons if row.verdict == kind]
            told += [f"{WORDS[kind]}: {', '.join(names)}"] if names else []
        study, _, reference = place.partition(" against ")
        lines.append(f"- **{study}, against `{reference}`**: {'; '.join(told)}.")
    count = sum(len(task.comparisons) for task in verdict.tasks.values())
    text = (
        "![differences from both references with their 95% intervals](differences.svg)\n\n"
        "The figure: a row for each idea, less perplexity to the right. Green is better and red is worse after"
        f" correction, blue is equivalent, grey is undecided. All {count} comparisons are one family (Holm): the chance"
        " of any false verdict is at most 5%."
    )
    return "\n".join([*lines, "", text])


def cell(row: ft.Comparison | None) -> str:
    return "–" if row is None else f"{WORDS[row.verdict]} {with_interval(row.shown)}"


def ideas_table(verdict: ft.Verdict, rows: Rows) -> str:
    changes = {entry.name: entry.changes for entry in ft.catalogue().entries}
    order = list(dict.fromkeys(changes.values()))
    lines = []
    for idea, own in rows.items():
        name = idea.split(" ")[0]
        place, row = next(iter(own.items()))
        changed = changes.get(name, "the baseline's positions")
        lines.append(
            [changed, f"**{idea}**", *(cell(own.get(each)) for each in verdict.tasks), *costs(verdict, place, row)]
        )
    lines.sort(key=lambda cells: order.index(cells[0]) if cells[0] in order else len(order))
    lead = (
        "Difference in perplexity in %, mean of the three test sets, with its 95% interval (lower is better). Then:"
        f" parameters, and time of a training step, relative to `{REFERENCES[0]}`."
    )
    return f"{lead}\n\n{table(['changes', 'idea', *verdict.tasks, 'parameters', 'time of a step'], lines)}"


def costs(verdict: ft.Verdict, place: str, row: ft.Comparison) -> list[str]:
    task = verdict.tasks[place]
    own, base = task.cost.get(row.variant), task.cost.get(REFERENCES[0])
    told = []
    for name in ("parameters", "seconds_per_step"):
        ours, theirs = getattr(own, name, None), getattr(base, name, None)
        told.append(f"{ours / theirs:.2f}" if ours and theirs else "–")
    return told


def counting_table(verdict: ft.Verdict) -> str:
    """Of one reference: the same scores stand in the other's table."""
    lines = [
        [idea_of(row.variant), row.test_set, WORDS[row.verdict], with_interval(row.shown)]
        for place, task in verdict.tasks.items()
        if place.endswith(REFERENCES[0])
        for row in task.baseline_comparisons
        if row.variant in (*REFERENCES, "rope") and task.sets[row.test_set].subset == row.subset
    ]
    lead = "Perplexity against a Kneser-Ney trigram on the same items, in % (negative: the network is better)."
    return f"{lead}\n\n{table(['network', 'test set', 'verdict', 'difference'], lines)}"


def rates_table(verdict: ft.Verdict) -> str:
    searches = {place.partition(" against ")[0]: task.search for place, task in verdict.tasks.items() if task.search}
    lines = []
    for study, search in searches.items():
        assert search is not None
        for variant, own in search.variants.items():
            tried = ", ".join(f"{rate:g}" for rate in sorted(own.rates))
            rate = own.best.get("training.learning_rate", "–")
            lines.append([study, idea_of(variant), f"{rate:g}" if isinstance(rate, float) else rate, tried])
    lead = (
        "Every variant was given the same tries on validation: rates a factor of two apart for a quarter of the"
        " training, until the two best have neighbours on both sides; then these two for all of it (seed 1000, which"
        " judges nothing)."
    )
    return f"{lead}\n\n{table(['study', 'idea', 'chosen', 'tried'], lines)}"


def limits(verdict: ft.Verdict) -> str:
    texts = dict.fromkeys(
        text for sentence, text in zip(verdict.sentences, verdict.text, strict=True) if sentence.limit
    )
    return "What the verdict itself says beside its answers:\n\n" + "\n".join(f"- {text}" for text in texts)


def claims_table(rows: Rows) -> str:
    claims = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))
    papers = {entry.name: " ".join(f"<{paper}>" for paper in entry.papers) for entry in ft.catalogue().entries}
    lines = []
    for idea, own in rows.items():
        name = idea.split(" ")[0]
        if name in claims:
            lines.append([f"**{idea}**", papers.get(name, ""), claims[name], cell(next(iter(own.values())))])
    lead = "At their scale, which is far from this one; both may be true."
    return f"{lead}\n\n{table(['idea', 'paper', 'claimed', 'here'], lines)}"


def draw(places: list[str], rows: Rows) -> Figure:
    figure = Figure(figsize=(2.1 + 3.2 * len(places), 0.24 * len(rows) + 1.2), facecolor="white", layout="constrained")
    panels = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for axis, place in zip(panels, places, strict=True):
        axis.axvline(0, color="#333333", linewidth=0.8)
        for y, own in enumerate(rows.values()):
            row = own.get(place)
            if row is None or row.shown.low is None:
                continue
            colour = COLOURS.get(row.verdict, GREY)
            axis.plot([row.shown.low, row.shown.high], [y, y], "-", color=colour, linewidth=1.4)
            axis.plot([row.shown.estimate], [y], "o", color=colour, markersize=4)
        axis.invert_xaxis()  # lower is better
        axis.set_xlabel("perplexity, %")
        axis.set_title(place, loc="left", fontsize=8)
        axis.grid(axis="x", color="#e5e5e5")
    panels[0].set_yticks(range(len(rows)), list(rows))
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    return figure


if __name__ == "__main__":
    main()
