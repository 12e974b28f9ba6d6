"""The page of an atlas: one table, one figure, made from the verdict over all its studies. Prose is in page.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial import catalogue
from fairtrial.apps.markdown import write_markdown
from fairtrial.recipe import read_toml
from fairtrial.report import difference_text, figure_bytes, our_look, shown_difference, spoken_time
from fairtrial.statistics import counted
from fairtrial.study import Plan

HERE = Path(__file__).parent
WORDS = {
    "better": "helps", "worse": "hurts", "same": "changes nothing", "undetected": "not seen",
    "not_comparable": "not comparable", "too_few_seeds": "too few seeds",
}  # fmt: skip
COLOURS = {"better": "#1a7a3c", "worse": "#b2182b", "same": "#2166ac"}
MIXED = "mixed"
INK = "#777777"
ROW = 0.22  # inches of one row of the figure


@dataclass(frozen=True)
class Made:
    """How the page came about."""

    command: str
    seconds: float
    width: int
    left_out: tuple[str, ...]


@dataclass
class Idea:
    """A variant in all studies, by study and test set: as it is, and with the baseline's budget."""

    name: str
    group: str
    papers: tuple[str, ...]
    claim: str
    plain: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    matched: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    cost: dict[str, dict[str, Any]] = field(default_factory=dict)  # by study

    @property
    def answer(self) -> str:
        """Over all studies: what it does where anything was detected."""
        kinds = Counter(row["verdict"] for row in self.plain.values())
        if kinds["better"] and kinds["worse"]:
            return MIXED
        found = (kind for kind in ("better", "worse", "undetected") if kinds[kind])
        return next(found, kinds.most_common(1)[0][0])


def write_page(
    verdict: Mapping[str, Any], plans: Mapping[str, Plan], ideas: Sequence[Idea], path: Path, made: Made
) -> Path:
    """The page and, in a folder of its name beside it, its figure."""
    pictures = {"differences.svg": draw(verdict, ideas)}
    return write_markdown(path, HERE / "page.md", pictures, values_of(verdict, plans, ideas, made))


def places(verdict: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every study with each of its test sets."""
    return [(study, name) for study, task in verdict["tasks"].items() for name in task["sets"]]


def ideas_of(verdict: Mapping[str, Any], plans: Mapping[str, Plan]) -> list[Idea]:
    """In the order of what they change."""
    entries = {entry.name: entry for entry in catalogue().entries}
    claims, groups = read_toml(HERE / "claims.toml"), list(dict.fromkeys(each.changes for each in entries.values()))
    ideas: dict[str, Idea] = {}
    for study, task in verdict["tasks"].items():
        for row in task["comparisons"]:
            variant = plans[study].study.variant(row["variant"])
            name = variant.twin_of or variant.name
            parts = [choice.name for choice in plans[study].recipes[plans[study].study.tasks[0]][name].parts]
            entry = entries.get(parts[-1]) if parts else entries.get("none")
            idea = ideas.setdefault(
                name,
                Idea(
                    name.removeprefix(f"{verdict['baseline']}+"),
                    entry.changes if entry else "other",
                    entry.papers if entry else (),
                    claims.get(parts[-1] if parts else "none", ""),
                ),
            )
            (idea.matched if variant.twin_of else idea.plain)[study, row["set"]] = row
            if not variant.twin_of:
                idea.cost[study] = task["cost"].get(name, {}) | {"baseline": task["cost"].get(verdict["baseline"], {})}
    return sorted(ideas.values(), key=lambda idea: groups.index(idea.group) if idea.group in groups else len(groups))


def answers_of(ideas: Sequence[Idea]) -> dict[str, list[str]]:
    """Which ideas help, hurt and so on."""
    return {kind: [idea.name for idea in ideas if idea.answer == kind] for kind in (*WORDS, MIXED)}


def values_of(
    verdict: Mapping[str, Any], plans: Mapping[str, Plan], ideas: Sequence[Idea], made: Made
) -> dict[str, Any]:
    """What the template shows."""
    rows = [row for task in verdict["tasks"].values() for row in task["comparisons"]]
    return {
        "verdict": verdict, "made": made, "took": spoken_time(made.seconds), "answers": answers_of(ideas),
        "at_a_time": counted(made.width, "trial"), "baseline": verdict["baseline"],
        "trials": sum(len(plan.trials()) for plan in plans.values()),
        "seeds": sorted({len(plan.study.seeds) for plan in plans.values()}),
        "family": max((row["family"] for row in rows), default=0),
        "columns": [title(verdict, place) for place in places(verdict)],
        "ideas": [[idea.group, *cells(verdict, idea.name, idea.plain), *cost_cells(idea)] for idea in ideas],
        "matched": [cells(verdict, idea.name, idea.matched) for idea in ideas if idea.matched],
        "changed": changed_by_matching(verdict, ideas),
        "counting": counting_rows(verdict),
        "papers": [
            [f"**{idea.name}**", " ".join(f"<{paper}>" for paper in idea.papers), idea.claim, seen(idea)]
            for idea in ideas
            if idea.claim
        ],
        "study_count": "one study" if len(plans) == 1 else f"{len(plans)} studies",
        "absent": absent_parts(plans),
        "studies": [setting(study, plan, verdict["tasks"][study]) for study, plan in plans.items()],
    }  # fmt: skip


def absent_parts(plans: Mapping[str, Plan]) -> list[tuple[str, str]]:
    """Built-in parts that are in no study, and why, if that is known."""
    recipes = (recipe for plan in plans.values() for task in plan.recipes.values() for recipe in task.values())
    tried = {choice.name for recipe in recipes for choice in recipe.parts} | {"none"}
    reasons = read_toml(HERE / "claims.toml")["left_out"]
    names = [entry.name for entry in catalogue().entries if entry.name not in tried]
    return [(name, reasons.get(name, "in none of these studies.")) for name in names]


def title(verdict: Mapping[str, Any], place: tuple[str, str]) -> str:
    """The study, with its test set where it has several."""
    study, name = place
    return f"{study}, {name}" if len(verdict["tasks"][study]["sets"]) > 1 else study


def cells(verdict: Mapping[str, Any], name: str, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[str]:
    """An idea and, for each study and test set, what it does there."""
    found = [f"**{name}**"]
    for place in places(verdict):
        if (row := rows.get(place)) is None:
            found.append("–")
            continue
        word = WORDS.get(row["verdict"], row["verdict"])
        word = f"**{word}**" if row["verdict"] in ("better", "worse") else word
        found.append(f"{word} {difference_text(verdict['tasks'][place[0]], dict(row))}")
    return found


def cost_cells(idea: Idea) -> list[str]:
    """Parameters and time of a step against the baseline's, over the studies."""
    cells = []
    for name in ("parameters", "seconds_per_step"):
        ratios = [
            cost[name] / cost["baseline"][name]
            for cost in idea.cost.values()
            if cost.get(name) and cost["baseline"].get(name)
        ]
        low, high = (f"{each:.2f}" for each in (min(ratios), max(ratios))) if ratios else ("–", "–")
        cells.append(low if low == high else f"{low} to {high}")
    return cells


def changed_by_matching(verdict: Mapping[str, Any], ideas: Sequence[Idea]) -> list[str]:
    """Where the verdict at the baseline's budget is another than at the equal recipe."""
    return [
        f"{idea.name} ({title(verdict, (study, name))}): {WORDS[idea.plain[study, name]['verdict']]}, at the same"
        f" budget {WORDS[row['verdict']]}"
        for idea in ideas
        for (study, name), row in idea.matched.items()
        if (study, name) in idea.plain and idea.plain[study, name]["verdict"] != row["verdict"]
    ]


def seen(idea: Idea) -> str:
    kinds = Counter(WORDS[row["verdict"]] for row in idea.plain.values())
    return ", ".join(f"{word} ({count} of {kinds.total()})" for word, count in kinds.most_common())


def counting_rows(verdict: Mapping[str, Any]) -> list[list[str]]:
    """The baseline variant against what needs no network."""
    rows = []
    for study, task in verdict["tasks"].items():
        for row in task["against_baselines"]:
            decisive = task["sets"][row["set"]]["basis"] == row["basis"]
            if row["variant"] == verdict["baseline"] and decisive:
                rows.append([study, row["set"], row["baseline"], difference_text(task, row)])
    return rows


def setting(study: str, plan: Plan, task: Mapping[str, Any]) -> list[str]:
    recipe = plan.recipes[plan.study.tasks[0]][plan.study.baseline]
    shape, metric = recipe.shape, task["metric"]
    network = f"{counted(shape.layers, 'layer')}, width {shape.width}, {counted(shape.heads, 'head')}"
    items = ", ".join(
        f"{facts['clean' if facts['basis'] == 'clean' else 'items']:,}" for facts in task["sets"].values()
    )
    least = (
        counted(round(task["least_difference"]), "point") if metric == "accuracy" else f"{task['least_difference']:.0%}"
    )
    return [study, plan.study.name, network, str(recipe.training.duration), items, metric, least]


def draw(verdict: Mapping[str, Any], ideas: Sequence[Idea]) -> bytes:
    """A panel for each study and test set, a row for each idea: the difference and its 95% interval; hollow: at the
    baseline's budget. To the right is better."""
    from matplotlib.figure import Figure

    columns = places(verdict)
    with our_look():
        height = ROW * len(ideas) + 1.2
        figure = Figure(figsize=(2.1 + 2.2 * len(columns), height), dpi=100, facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axis, place in zip(panels, columns, strict=True):
            task = verdict["tasks"][place[0]]
            axis.axvline(0, color="#333333", linewidth=0.8)
            for y, idea in enumerate(ideas):
                for rows, down, fill in ((idea.plain, 0.0, "full"), (idea.matched, 0.3, "none")):
                    if row := rows.get(place):
                        draw_row(axis, task, row, y + down, fill)
            lower = task["metric"] != "accuracy"
            if lower:
                axis.invert_xaxis()  # a lower perplexity is better
            axis.set_xlabel("perplexity, %" if lower else "accuracy, points")
            axis.set_title(title(verdict, place), loc="left", fontsize=8)
            axis.grid(axis="x", color="#e5e5e5")
            axis.spines[["top", "right"]].set_visible(False)
        panels[0].set_yticks(range(len(ideas)), [idea.name for idea in ideas])
        panels[0].set_ylim(len(ideas) - 0.4, -0.6)
        return figure_bytes(figure, "svg")


def draw_row(axis: Any, task: Mapping[str, Any], row: dict[str, Any], y: float, fill: str) -> None:
    value, low, high = shown_difference(dict(task), row)
    if value is None or low is None or high is None:
        return
    colour = COLOURS.get(row["verdict"], INK)
    axis.plot([low, high], [y, y], "-", color=colour, linewidth=1.2)
    axis.plot([value], [y], "o", color=colour, markersize=4, fillstyle=fill)
