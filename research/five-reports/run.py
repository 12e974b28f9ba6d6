"""Five student reports, retried: every claim over several seeds, and published figures beside ours.

Each study is run as the reports ran it, and once more with a tenth of the training text held back and the weights
chosen on it (`-chosen`). A claim that compares two variants is judged on all test sets together; these comparisons are
one family."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import stdtrit

import fairtrial as ft
from pages import (
    COLOURS,
    GREY,
    outcomes_of,
    records_section,
    save_figure,
    table,
    with_interval,
    write_sections,
)

HERE = Path(__file__).parent
CLAIMS = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))["claims"]
PUBLISHED = tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))
STUDIES = {
    "speeches-classify": "speeches",
    "speeches-lm": "speeches",
    "lm1b-lm": "lm1b",
    "sst2-classify": "sst2",
    "sst2-classify-tuned": "sst2",
}
CHOSEN = {"data.validation": 0.1, "training.keep": "best", "scoring.watch_test": False}
SET_NAMES = {"obama": "Obama", "wbush": "W. Bush", "hbush": "H. W. Bush"}  # of the embedded corpus
WANTED = {"better": ft.VerdictKind.BETTER, "worse": ft.VerdictKind.WORSE, "same": ft.VerdictKind.EQUIVALENT}
HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "inconclusive", "not run"
LAYER_TEXTS = 100  # test sentences whose attention is measured


def main() -> None:
    own = {name: outcomes_of(HERE, name, HERE / f"{name}.toml", data) for name, data in STUDIES.items()}
    chosen = {}
    for name in ("speeches-classify", "speeches-lm", "lm1b-lm"):
        often = {} if "classify" in name else {"training.select_every": "50 steps"}
        chosen[name] = outcomes_of(HERE, f"{name}-chosen", HERE / f"{name}.toml", STUDIES[name], **CHOSEN, **often)
    numbers = {name: trial_numbers(name, each) for name, each in own.items() if each is not None}
    comparisons = judge_claims(own)
    later = judge_claims(chosen)
    answers = [answer(claim, own, numbers, comparisons) for claim in CLAIMS]
    save_figure(draw(comparisons, "accuracy"), HERE / "claims-accuracy.svg")
    save_figure(draw(comparisons, "perplexity"), HERE / "claims-perplexity.svg")
    missing = [name for name, each in own.items() if each is None]
    write_sections(
        HERE / "README.md",
        {
            "Claims": claims_section(answers, comparisons, later, own),
            "Compared with word counts": counting_section(own),
            "Figures": figures_section(own, numbers),
            "Records": records_section([*own.values(), *chosen.values()], missing),
        },
    )


def trial_numbers(name: str, outcomes: ft.Outcomes) -> dict[str, list[dict[str, Any]]]:
    """Of every trial, what outcomes of test items do not hold: scores in windows and while training, attention by
    layer. Kept beside the outcomes; variant -> one entry for each seed."""
    stored = HERE / "outcomes" / f"{name}.json"
    if not stored.is_file():
        ((task, found),) = outcomes.tasks.items()
        study, plugins = ft.Study(HERE / "runs" / name), sorted(HERE.glob("*_flaws.py"))
        numbers: dict[str, list[dict[str, Any]]] = {}
        for variant, sets in found.variants.items():
            for seed in next(iter(sets.values())).seeds:
                run = study.run(variant, seed, task, plugins=plugins)
                entry = {"metrics": run.metrics, "curves": {each.name: each.points for each in run.curves}}
                if (name, variant) == ("speeches-classify", "learned"):
                    entry["layers"] = attention_by_layer(run)
                numbers.setdefault(variant, []).append(entry)
        stored.write_text(json.dumps(numbers, default=vars), encoding="utf-8", newline="\n")
    return json.loads(stored.read_text(encoding="utf-8"))


def attention_by_layer(run: ft.Run) -> list[float]:
    """The entropy of attention as a share of a uniform distribution's, by layer."""
    texts = [document.text for test in run.splits.tests.values() for document in test]
    layers = []
    for text in texts[:: max(1, len(texts) // LAYER_TEXTS)][:LAYER_TEXTS]:
        maps = run.attention(text)
        weights = maps.weights.astype(float)  # layer head query key
        entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum(-1)
        if weights.shape[-1] > 1:
            layers.append(entropy.mean((1, 2)) / math.log(weights.shape[-1]))
    return [float(value) for value in np.mean(layers, 0)]


def judge_claims(outcomes: dict[str, ft.Outcomes | None]) -> dict[tuple[str, str], ft.Comparison]:
    """Claim and study -> the comparison that decides it. All of them are one family."""
    pairs, keys = {}, {}
    for claim in CLAIMS:
        for study in dict.fromkeys((claim["study"], claim.get("one_rate", claim["study"]))):
            found = outcomes.get(study)
            names = {claim["variant"], claim.get("against", "")}
            if (
                claim["rule"] in WANTED
                and found is not None
                and names <= next(iter(found.tasks.values())).variants.keys()
            ):
                key = f"{claim['id']} {study}"
                pairs[key], keys[key] = (
                    found.pair(claim["variant"], claim["against"], pooled=True),
                    (claim["id"], study),
                )
    if not pairs:
        return {}
    verdict = ft.Outcomes.join("claims", pairs).verdict()
    return {keys[key]: task.comparisons[0] for key, task in verdict.tasks.items()}


def answer(
    claim: dict[str, Any],
    outcomes: dict[str, ft.Outcomes | None],
    numbers: dict[str, Any],
    comparisons: dict[tuple[str, str], ft.Comparison],
) -> tuple[str, str]:
    """Whether a claim holds, and what was measured."""
    found = outcomes.get(claim["study"])
    if found is None:
        return NOT_RUN, "The trials that it needs were not run."
    if claim["rule"] in WANTED:
        return compared(claim, comparisons[claim["id"], claim["study"]])
    rules = {"narrows": narrows, "quicker": quicker, "concentrates": concentrates, "nearest": nearest}
    return rules[claim["rule"]](claim, next(iter(found.tasks.values())), numbers[claim["study"]], found)


def compared(claim: dict[str, Any], row: ft.Comparison) -> tuple[str, str]:
    if row.verdict in (ft.VerdictKind.UNDECIDED, ft.VerdictKind.NOT_COMPARABLE):
        return OPEN, row.sentence
    return HOLDS if row.verdict == WANTED[claim["rule"]] else FAILS, row.sentence


def narrows(claim: dict[str, Any], task: Any, numbers: dict[str, Any], _: ft.Outcomes) -> tuple[str, str]:
    """The gap between training accuracy and accuracy on clean test items, seed by seed."""
    gaps = {}
    for variant in (claim["variant"], claim["against"]):
        (name,) = task.sets
        outcomes, clean = task.variants[variant][name], task.status.get(name)
        right = (outcomes["guess"] == outcomes["label"])[:, slice(None) if clean is None else clean == 0].mean(1)
        train = [
            dict(entry["curves"]["train"])[max(step for step, _ in entry["curves"]["train"])]
            for entry in numbers[variant]
        ]
        gaps[variant] = [100 * (seen - test) for seen, test in zip(train, right, strict=True)]
    return below_zero([one - other for one, other in zip(*gaps.values(), strict=True)], "points", least=1.0)


def quicker(claim: dict[str, Any], task: Any, _: dict[str, Any], __: ft.Outcomes) -> tuple[str, str]:
    one, other = (task.cost[claim[side]] for side in ("variant", "against"))
    if not (one.seconds_per_step and other.seconds_per_step):
        return OPEN, "The records store no time per step."
    ratio = one.seconds_per_step / other.seconds_per_step
    return OPEN, f"A step takes {ratio:.2f} times as long (medians on one machine, which decide nothing)."


def concentrates(claim: dict[str, Any], _: Any, numbers: dict[str, Any], __: ft.Outcomes) -> tuple[str, str]:
    layers = [entry["layers"] for entry in numbers[claim["variant"]]]
    outcome, text = below_zero([row[-1] - row[0] for row in layers], "")
    shares = ", ".join(f"{value:.2f}" for value in np.mean(layers, 0))
    return (
        outcome,
        f"Entropy relative to uniform attention, from the first layer to the last: {shares}. Last minus first: {text}",
    )


def nearest(claim: dict[str, Any], task: Any, _: dict[str, Any], outcomes: ft.Outcomes) -> tuple[str, str]:
    """Whose speeches is the training text like? The claimed set must be the easiest for the network and for models that
    count words: a text may be easy to predict for anyone."""
    scores = next(iter(outcomes.verdict().tasks.values()))
    name = claim["set"] if claim["set"] in task.sets else SET_NAMES[claim["set"]]
    models = {claim["variant"]: scores.scores[claim["variant"]], **scores.baseline_scores}
    models.pop("bigram", None)
    means = {model: {place: by["all"].mean for place, by in sets.items()} for model, sets in models.items()}
    others = [place for place in task.sets if place != name]
    clear = all(sets[name].high < sets[place].low for sets in means.values() for place in others)
    against = any(all(sets[name].low > sets[place].high for place in others) for sets in means.values())
    shown = "; ".join(
        f"{model} " + ", ".join(f"{place} {each.estimate:,.0f}" for place, each in sets.items())
        for model, sets in means.items()
    )
    return HOLDS if clear else FAILS if against else OPEN, f"Perplexity by test set: {shown}."


def below_zero(values: list[float], unit: str, least: float = 0.0) -> tuple[str, str]:
    """`holds` if the mean over seeds is clearly below zero (95%)."""
    half = (
        float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    )
    low, high = mean(values) - half, mean(values) + half
    outcome = HOLDS if high < 0 else FAILS if low > 0 or (-least < low and high < least) else OPEN
    return outcome, f"{mean(values):+.2f} {unit} (95% interval {low:+.2f} to {high:+.2f}; {len(values)} seeds)."


def claims_section(
    answers: list[tuple[str, str]],
    comparisons: dict[tuple[str, str], ft.Comparison],
    later: dict[tuple[str, str], ft.Comparison],
    outcomes: dict[str, ft.Outcomes | None],
) -> str:
    rows, texts = [], []
    for claim, (outcome, because) in zip(CLAIMS, answers, strict=True):
        row, at_one = (
            comparisons.get((claim["id"], claim["study"])),
            comparisons.get((claim["id"], claim.get("one_rate", ""))),
        )
        difference = (
            "" if row is None else with_interval(row.shown) + (" points" if row.metric.name == "accuracy" else "%")
        )
        shown = f"**{outcome}**"
        if at_one is not None:
            shown = f"at one rate **{compared(claim, at_one)[0]}**; each at its own {shown}"
        rows.append(
            [claim["report"], claim["says"], shown, difference, "; ".join(doubts(claim, outcomes)) or "one run of each"]
        )
        again = later.get((claim["id"], claim["study"]))
        more = "" if again is None else f" With the weights chosen on held-out text: {again.sentence}"
        texts.append(f"**{claim['says']}** ({claim['report']}) *{outcome.capitalize()}.* {because}{more}")
    figures = "![claims about accuracy](claims-accuracy.svg)\n\n![claims about perplexity](claims-perplexity.svg)"
    columns = ["report", "claim", "retried", "difference", "the report's own comparison"]
    return "\n\n".join([table(columns, rows), figures, *texts])


def doubts(claim: dict[str, Any], outcomes: dict[str, ft.Outcomes | None]) -> list[str]:
    """What no number of seeds would have repaired."""
    found = outcomes.get(claim["study"])
    if found is None:
        return []
    (task,) = found.tasks.values()
    reasons = []
    audit = task.audits.get(claim.get("as_coded", ""))
    if audit is not None and audit.blocks:
        code = "its code as we reconstruct it" if claim.get("reconstructed") else "its own code, repeated,"
        reasons.append(f"unsound: {code} fails the leak audit ({', '.join(audit.failed)})")
    copied = sum(int((status > 0).sum()) for status in task.status.values())
    if task.metric == "accuracy" and copied and claim["rule"] in (*WANTED, "narrows"):
        items = sum(len(status) for status in task.status.values())
        reasons += (
            [f"unsound: {copied} of {items} test items also occur in the training set"] if copied > 0.01 * items else []
        )
    if claim.get("one_rate"):
        reasons.append("unsound: optimizers that need different learning rates shared one")
    return reasons


def counting_section(outcomes: dict[str, ft.Outcomes | None]) -> str:
    """Models in rows, the best first; those that only count words in bold."""
    blocks = ["Models that only count words (in bold), on the same training text and test items."]
    for study, found in outcomes.items():
        if found is None:
            continue
        (task,) = found.verdict().tasks.values()
        models = {
            name: sets for name, sets in task.scores.items() if not (name in task.audits and task.audits[name].blocks)
        }
        columns = [
            (name, subset)
            for name in task.sets
            for subset in ("all", "clean")
            if subset in next(iter(models.values()))[name]
        ]
        columns = [each for each in columns if each[1] == "all" or len(task.sets) == 1]
        cells = {
            name: [sets[place][subset].mean for place, subset in columns]
            for name, sets in (models | dict(task.baseline_scores)).items()
        }
        order = sorted(cells, key=lambda name: cells[name][-1].estimate or 0, reverse=task.metric.higher_is_better)
        rows = [
            [
                f"**{name}**" if name in task.baseline_scores else name,
                *(with_interval(each, sign=False) for each in cells[name]),
            ]
            for name in order
        ]
        titles = [f"{place}, {subset}" if subset != "all" else place for place, subset in columns]
        blocks.append(f"{study}, {task.metric.name}:\n\n{table(['model', *titles], rows)}")
    return "\n\n".join(blocks)


def figures_section(outcomes: dict[str, ft.Outcomes | None], numbers: dict[str, Any]) -> str:
    lead = (
        "*Published* is the report's number. *Ours* is the mean over seeds with its 95% interval, measured as the"
        " report measured. *Position*: `inside` the range of our seeds, `near` it (where one more run would fall, 95%),"
        " `below` or `above`. r4 trained on other sentences, so its levels cannot be compared; the"
        " order of its variants can."
    )
    rows = []
    for measure in ("accuracy", "window_perplexity", "sentence_perplexity", "sentence_loss"):
        for block in PUBLISHED[measure]:
            for key, value in block["values"].items():
                variant, name = block.get("variant", key), block.get("set", key)
                found = outcomes.get(block["study"])
                if found is None or block.get("at"):
                    continue
                ours = measured(
                    measure, block, variant, name, next(iter(found.tasks.values())), numbers[block["study"]]
                )
                if ours:
                    how = measure.replace("_", " ") + (", best on test" if block.get("picked_on_test") else "")
                    place = "other training text" if block.get("other_data") else position(value, ours)
                    rows.append([block["report"], variant, name, how, f"{value:,}", interval_text(ours), place])
    return f"{lead}\n\n{table(['report', 'variant', 'set', 'measure', 'published', 'ours', 'position'], rows)}"


def measured(
    measure: str, block: dict[str, Any], variant: str, name: str, task: Any, numbers: dict[str, Any]
) -> list[float]:
    """Ours, one for each seed; empty where it is not stored."""
    if variant not in task.variants:
        return []
    place = name if name in (*task.sets, "train") else SET_NAMES.get(name, "")
    if measure.startswith("sentence"):  # means over sentences, of one test set
        if name != "dev":
            return []
        outcomes = task.variants[variant][task.sets[0]]
        losses = outcomes["nll"] / np.maximum(1, outcomes["tokens"])
        values = np.exp(np.minimum(700, losses)) if measure == "sentence_perplexity" else losses
        return [float(row.mean()) for row in values]
    if place == "train" or block.get("picked_on_test"):
        curves = [[value for _, value in entry["curves"].get(place, [])] for entry in numbers[variant]]
        if not all(curves):
            return []
        best = max if measure == "accuracy" else min
        values = [curve[-1] if place == "train" else best(curve) for curve in curves]
    else:
        values = [entry["metrics"][place][measure] for entry in numbers[variant] if place in entry["metrics"]]
    return [100 * value for value in values] if measure == "accuracy" else values


def position(value: float, ours: list[float]) -> str:
    if min(ours) <= value <= max(ours):
        return "inside"
    if len(ours) > 1:
        half = float(stdtrit(len(ours) - 1, 0.975)) * stdev(ours) * math.sqrt(1 + 1 / len(ours))
        if abs(value - mean(ours)) <= half:
            return "near"
    return "below" if value < min(ours) else "above"


def interval_text(ours: list[float]) -> str:
    half = float(stdtrit(len(ours) - 1, 0.975)) * stdev(ours) / math.sqrt(len(ours)) if len(ours) > 1 else math.nan
    return with_interval(ft.Interval(mean(ours), mean(ours) - half, mean(ours) + half), sign=False, digits=2)


def draw(comparisons: dict[tuple[str, str], ft.Comparison], metric: str) -> Figure:
    rows = [(f"{claim}, {study}", row) for (claim, study), row in comparisons.items() if row.metric.name == metric]
    figure = Figure(figsize=(7.5, 0.3 * len(rows) + 1.1), facecolor="white", layout="constrained")
    axis = figure.add_subplot()
    axis.axvline(0, color="#333333", linewidth=0.8)
    for y, (_, row) in enumerate(rows):
        if row.shown.low is not None:
            colour = COLOURS.get(row.verdict, GREY)
            axis.plot([row.shown.low, row.shown.high], [y, y], "-", color=colour, linewidth=2)
            axis.plot([row.shown.estimate], [y], "o", color=colour, markersize=6)
    axis.set_yticks(range(len(rows)), [name for name, _ in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel("difference, points" if metric == "accuracy" else "change of perplexity, %")
    axis.grid(axis="x", color="#e5e5e5")
    return figure


if __name__ == "__main__":
    main()
