"""Matched budgets: a variant with more or fewer parameters, FLOPs or seconds than the baseline is judged a second time
at the baseline's, as a twin of its own: with another feed-forward dimension for parameters, trained for more or fewer
steps for FLOPs and seconds (of training steps, not of scoring)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from fairtrial.engines.job import Engine, Job, JobResult, Stop
from fairtrial.errors import BadInput
from fairtrial.formatting import percent_change
from fairtrial.recipe import write_recipe
from fairtrial.results.values import Matched, MatchSummary, TaskVerdict, VerdictKind
from fairtrial.results.verdict_tables import VERDICTS
from fairtrial.study.design import BUDGETS, Variant
from fairtrial.study.plan import Chosen, OnEvent, Plan, calibrate, calibration_mark, recipes_of, run_jobs

NEAR = {"parameters": 0.01, "flops": 0.01, "seconds": 0.05}  # differences that are none: a step's time is noisy
At = tuple[str, str]  # task, variant
Adjusted = dict[At, dict[str, Any]]  # settings, what the field was before, and what they were found for
WORDS = {"parameters": "parameters", "flops": "FLOPs", "seconds": "seconds"}


def match_budgets(plan: Plan, chosen: Chosen, engine: Engine, on_event: OnEvent, stop: Stop) -> Plan:
    """The calibrated plan with a twin for each variant whose budget is not the baseline's."""
    budget = plan.study.match
    if not budget:
        return plan
    study = plan.study.with_twins(budget, ())
    plan = replace(plan, study=study, recipes=recipes_of(study, chosen))
    baseline = study.baseline
    ratios: dict[At, float] = {}
    for task, named in plan.calibration.items():
        if budget == "parameters" and any(each.encoder.source != "none" for each in plan.recipes[task].values()):
            what = "match = 'parameters' adjusts the shape, which a pretrained encoder brings with it"
            raise BadInput(what, "match = 'flops' or 'seconds' changes the number of steps instead")
        for variant in study.own:
            if any(name not in named for name in (variant.name, baseline)):
                what = f"the {WORDS[budget]} of {variant.name!r} ({task}) could not be measured"
                raise BadInput(what, "leave match out to see why, or leave the variant out")
            ratios[task, variant.name] = planned(named[variant.name], budget) / planned(named[baseline], budget)
    twins = [
        variant
        for variant in study.own
        if any(abs(ratios[task, variant.name] - 1) > NEAR[budget] for task in plan.recipes)
    ]
    adjusted = fitted(plan, twins, engine, on_event, stop) if budget == "parameters" else shortened(plan, twins)
    matched: dict[str, dict[str, Any]] = {task: {} for task in plan.recipes}
    for (task, name), ratio in ratios.items():
        if name != baseline:
            matched[task][name] = {**adjusted.get((task, name), {}), "before": ratio}
    study = study.with_twins(budget, (twin_of(variant, budget, matched) for variant in twins))
    plan = replace(plan, study=study, recipes=recipes_of(study, chosen), matched=matched)
    return calibrate(plan, engine, on_event, stop)


def planned(facts: Mapping[str, Any], budget: str) -> float:
    """What one trial takes, as calibration measured it."""
    if budget == "parameters":
        return float(facts["parameters"])
    return float(facts["steps"] * facts["flops_per_step" if budget == "flops" else "step_seconds"])


def twin_of(variant: Variant, budget: str, matched: Mapping[str, Mapping[str, Any]]) -> Variant:
    settings = {task: named[variant.name]["settings"] for task, named in matched.items()}
    name = twin_name(variant.name, budget)
    return replace(variant, name=name, twin_of=variant.name, twin=budget, task_settings=settings, searched=False)


def twin_name(name: str, budget: str) -> str:
    return f"{name} (same {WORDS[budget]})"


def shortened(plan: Plan, twins: list[Variant]) -> Adjusted:
    """So many steps that a trial takes what the baseline's takes."""
    found: Adjusted = {}
    budget = plan.study.match
    for task, named in plan.calibration.items():
        target = planned(named[plan.study.baseline], budget)
        for variant in twins:
            facts = named[variant.name]
            steps = max(1, round(target / planned(facts | {"steps": 1}, budget)))
            found[task, variant.name] = {"settings": {"training.duration": f"{steps} steps"}, "from": facts["steps"]}
    return found


def fitted(plan: Plan, twins: list[Variant], engine: Engine, on_event: OnEvent, stop: Stop) -> Adjusted:
    """The feed-forward dimension with which each variant comes nearest to the baseline's parameters. What was found in
    this folder before is not computed again."""
    known = plan.home.read_plan().get("matched", {})
    found: Adjusted = {}
    jobs: list[Job] = []
    marks: dict[At, str] = {}
    for task, named in plan.calibration.items():
        target = named[plan.study.baseline]["parameters"]
        for variant in twins:
            at = (task, variant.name)
            marks[at] = f"{calibration_mark(plan, *at)}-{target}"
            old = known.get(task, {}).get(variant.name, {})
            if old.get("mark") == marks[at]:
                found[at] = old
                continue
            text, options = write_recipe(plan.recipes[task][variant.name]), {"parameters": target}
            key, seed = (task, variant.name, "match"), plan.study.seeds[0]
            jobs.append(Job(key, "match", text, seed, plugins=variant.plugins, options=options))

    def accept(result: JobResult) -> None:
        task, name = result.job.key[:2]
        if result.facts is None:
            raise BadInput(f"variant {name!r} ({task}): {result.error}")
        hidden, before = result.facts["hidden"], plan.recipes[task][name].shape.hidden
        settings = {BUDGETS["parameters"]: hidden}
        found[task, name] = {"settings": settings, "from": before, "mark": marks[task, name]}

    run_jobs(engine, jobs, on_event, stop, accept)
    return found


def spent(plan: Plan, task: str, name: str) -> float:
    """What a variant's trials took: the median over seeds; as planned where none is finished."""
    budget, facts = plan.study.match, plan.calibration[task][name]
    found = []
    for record in plan.finished(task)[name].values():
        result = record.result
        paces = [entry.step_seconds for entry in record.clock() if entry.step_seconds is not None]
        measured = {**facts, "parameters": result.parameters, "steps": result.steps}
        found.append(planned(measured | ({"step_seconds": paces[-1]} if paces else {}), budget))
    return median(found) if found else planned(facts, budget)


def match_summary(plan: Plan, task: str) -> MatchSummary:
    """For the verdict: how near every variant came to the baseline's budget, before and after it was adjusted."""
    base = spent(plan, task, plan.study.baseline)
    variants = {}
    for name, adjusted in plan.matched.get(task, {}).items():
        matched = Matched(before=spent(plan, task, name) / base)
        if "settings" in adjusted:
            twin = twin_name(name, plan.study.match)
            field, value = next(iter(adjusted["settings"].items()))
            after = spent(plan, task, twin) / base
            matched = Matched(matched.before, after, twin, field, value, adjusted["from"])
        variants[name] = matched
    return MatchSummary(plan.study.match, variants, base)


def match_sentences(verdict: TaskVerdict) -> list[str]:
    """What equal cost changes."""
    if verdict.match is None:
        return []
    kinds, lines = kinds_of(verdict), []
    budget = WORDS[verdict.match.budget]
    for name, matched in verdict.match.variants.items():
        line = f"{name} takes {percent_change(matched.before)} {budget}"
        if matched.variant is None:
            lines.append(f"{line}: it is judged at equal {budget}.")
            continue
        line += f"; with {matched.field} = {matched.value} instead of {matched.original or 0:,.0f},"
        line += f" {percent_change(matched.after)}."
        for test_set, kind in kinds.get(name, {}).items():
            other = kinds.get(matched.variant, {}).get(test_set)
            if other and other != kind:
                words = VERDICTS[kind], VERDICTS[other]
                line += f" On {test_set} it is {words[0]} at the equal recipe, {words[1]} at equal {budget}."
        lines.append(line)
    return lines


def kinds_of(verdict: TaskVerdict) -> dict[str, dict[str, VerdictKind]]:
    """The verdict on each variant, by test set."""
    kinds: dict[str, dict[str, VerdictKind]] = {}
    for comparison in verdict.comparisons:
        kinds.setdefault(comparison.variant, {})[comparison.test_set] = comparison.verdict
    return kinds
