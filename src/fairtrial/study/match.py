"""Matched budgets: a variant with more or fewer parameters, FLOPs or seconds than the baseline is judged a second time
at the baseline's, as a twin of its own: with another feed-forward dimension for parameters, trained for more or fewer
steps for FLOPs and seconds (of training steps, not of scoring)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from fairtrial.engines.job import Engine, Job, JobResult, Stop
from fairtrial.errors import BadInput
from fairtrial.formatting import percent_change
from fairtrial.recipe import write_recipe
from fairtrial.results.values import Matched, MatchSummary, TaskVerdict, VerdictKind
from fairtrial.results.verdict_tables import VERDICTS
from fairtrial.stored_study import AdjustedBudget, Calibration
from fairtrial.study.design import BUDGETS, Variant
from fairtrial.study.plan import Chosen, OnEvent, Plan, calibrate, calibration_mark, recipes_of, run_jobs

NEAR = {"parameters": 0.01, "flops": 0.01, "seconds": 0.05}  # differences that are none: a step's time is noisy
At = tuple[str, str]  # task, variant
Adjusted = dict[At, AdjustedBudget]
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
    if budget == "parameters":
        adjusted = fitted(plan, twins, ratios, engine, on_event, stop)
    else:
        adjusted = shortened(plan, twins, ratios)
    matched: dict[str, dict[str, AdjustedBudget]] = {task: {} for task in plan.recipes}
    for (task, name), ratio in ratios.items():
        if name != baseline:
            matched[task][name] = adjusted.get((task, name), AdjustedBudget(before=ratio))
    study = study.with_twins(budget, (twin_of(variant, budget, matched) for variant in twins))
    plan = replace(plan, study=study, recipes=recipes_of(study, chosen), matched=matched)
    return calibrate(plan, engine, on_event, stop)


def planned(measured: Calibration, budget: str) -> float:
    """What one trial takes, as calibration measured it."""
    if budget == "parameters":
        return float(measured.parameters)
    return float(measured.steps * (measured.flops_per_step if budget == "flops" else measured.step_seconds))


def twin_of(variant: Variant, budget: str, matched: Mapping[str, Mapping[str, AdjustedBudget]]) -> Variant:
    settings = {task: named[variant.name].settings for task, named in matched.items()}
    name = twin_name(variant.name, budget)
    return replace(variant, name=name, twin_of=variant.name, twin=budget, task_settings=settings, searched=False)


def twin_name(name: str, budget: str) -> str:
    return f"{name} (same {WORDS[budget]})"


def shortened(plan: Plan, twins: list[Variant], ratios: Mapping[At, float]) -> Adjusted:
    """So many steps that a trial takes what the baseline's takes."""
    adjusted: Adjusted = {}
    budget = plan.study.match
    for task, named in plan.calibration.items():
        target = planned(named[plan.study.baseline], budget)
        for variant in twins:
            own, at = named[variant.name], (task, variant.name)
            steps = max(1, round(target / planned(replace(own, steps=1), budget)))
            settings = {BUDGETS[budget]: f"{steps} steps"}
            adjusted[at] = AdjustedBudget(before=ratios[at], settings=settings, original=own.steps)
    return adjusted


def fitted(
    plan: Plan, twins: list[Variant], ratios: Mapping[At, float], engine: Engine, on_event: OnEvent, stop: Stop
) -> Adjusted:
    """The feed-forward dimension with which each variant comes nearest to the baseline's parameters. What was found in
    this folder before is not computed again."""
    known = plan.home.read_plan().matched
    adjusted: Adjusted = {}
    jobs: list[Job] = []
    marks: dict[At, str] = {}
    for task, named in plan.calibration.items():
        target = named[plan.study.baseline].parameters
        for variant in twins:
            at = (task, variant.name)
            marks[at] = f"{calibration_mark(plan, *at)}-{target}"
            old = known.get(task, {}).get(variant.name)
            if old is not None and old.mark == marks[at]:
                adjusted[at] = replace(old, before=ratios[at])
                continue
            text, seed = write_recipe(plan.recipes[task][variant.name]), plan.study.seeds[0]
            jobs.append(Job((*at, "match"), "match", text, seed, plugins=variant.plugins, parameters=target))

    def accept(result: JobResult) -> None:
        task, name = result.job.key[:2]
        if not isinstance(result.value, int):
            raise BadInput(f"variant {name!r} ({task}): {result.error}")
        adjusted[task, name] = AdjustedBudget(
            before=ratios[task, name],
            settings={BUDGETS["parameters"]: result.value},
            original=plan.recipes[task][name].shape.hidden,
            mark=marks[task, name],
        )

    run_jobs(engine, jobs, on_event, stop, accept)
    return adjusted


def spent(plan: Plan, task: str, name: str) -> float:
    """What a variant's trials took: the median over seeds; as planned where none is finished."""
    budget, calibration = plan.study.match, plan.calibration[task][name]
    costs = []
    for record in plan.finished(task)[name].values():
        result = record.result
        paces = [entry.step_seconds for entry in record.clock() if entry.step_seconds is not None]
        measured = replace(calibration, parameters=result.parameters, steps=result.steps)
        costs.append(planned(replace(measured, step_seconds=paces[-1]) if paces else measured, budget))
    return median(costs) if costs else planned(calibration, budget)


def match_summary(plan: Plan, task: str) -> MatchSummary:
    """For the verdict: how near every variant came to the baseline's budget, before and after it was adjusted."""
    base = spent(plan, task, plan.study.baseline)
    variants = {}
    for name, adjusted in plan.matched.get(task, {}).items():
        matched = Matched(before=spent(plan, task, name) / base)
        if adjusted.settings:
            twin = twin_name(name, plan.study.match)
            field, value = next(iter(adjusted.settings.items()))
            after = spent(plan, task, twin) / base
            matched = Matched(matched.before, after, twin, field, value, adjusted.original)
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
