"""Equal parameters: a variant with more or fewer parameters than the baseline is judged a second time at the
baseline's number, as a variant of its own with another feed-forward dimension."""

from __future__ import annotations

from dataclasses import replace

from fairtrial.errors import BadInput
from fairtrial.formatting import percent_change
from fairtrial.results.values import Matched, MatchSummary, TaskVerdict
from fairtrial.results.verdict_tables import VERDICTS
from fairtrial.study.design import PARAMETERS
from fairtrial.study.plan import Chosen, Plan, recipes_of

NEAR = 0.01  # a relative difference that is none
FIELD = "shape.hidden"


def match_parameters(plan: Plan, chosen: Chosen) -> Plan:
    """The calibrated plan with a matched variant for each whose parameters are not the baseline's."""
    if not plan.study.match:
        return plan
    study = plan.study.with_matched(())
    plan = replace(plan, study=study, recipes=recipes_of(study, chosen))
    matched = []
    for variant in study.own:
        ratios = [parameters_of(plan, task, variant.name) for task in plan.recipes]
        if any(abs(ratio - 1) > NEAR for ratio in ratios):
            settings = {task: {FIELD: hidden_for(plan, task, variant.name)} for task in plan.recipes}
            name = matched_name(variant.name)
            adjusted = replace(variant, name=name, matched_to=variant.name, searched=False)
            matched.append(replace(adjusted, task_settings=settings))
    study = study.with_matched(matched)
    return replace(plan, study=study, recipes=recipes_of(study, chosen))


def matched_name(name: str) -> str:
    return f"{name} (same {PARAMETERS})"


def parameters_of(plan: Plan, task: str, name: str) -> float:
    """Relative to the baseline's."""
    measured = plan.calibration[task]
    if any(each not in measured for each in (name, plan.study.baseline)):
        what = f"the parameters of {name!r} ({task}) could not be counted"
        raise BadInput(what, "leave match out to see why, or leave the variant out")
    return measured[name].parameters / measured[plan.study.baseline].parameters


def hidden_for(plan: Plan, task: str, name: str) -> int:
    """The feed-forward dimension with which a variant comes nearest to the baseline's parameters."""
    own, target = plan.calibration[task][name], plan.calibration[task][plan.study.baseline].parameters
    first = plan.recipes[task][name].shape.hidden
    hidden = first + round((target - own.parameters) / own.unit_parameters) if own.unit_parameters else 0
    if hidden < 1:
        what = f"variant {name!r} ({task}): no {FIELD} gives it the baseline's {target:,} parameters"
        raise BadInput(what, "leave match out, or choose another shape")
    return hidden


def match_summary(plan: Plan, task: str) -> MatchSummary:
    """For the verdict: how near every variant came to the baseline's parameters, before and after it was adjusted."""
    variants, names = {}, [variant.name for variant in plan.study.variants]
    for variant in plan.study.own:
        if variant.name == plan.study.baseline:
            continue
        summary = Matched(parameters_of(plan, task, variant.name))
        if (twin := matched_name(variant.name)) in names:
            recipes = plan.recipes[task]
            hidden, original = recipes[twin].shape.hidden, recipes[variant.name].shape.hidden
            summary = replace(summary, after=parameters_of(plan, task, twin), variant=twin)
            summary = replace(summary, field=FIELD, value=hidden, original=original)
        variants[variant.name] = summary
    return MatchSummary(PARAMETERS, variants, plan.calibration[task][plan.study.baseline].parameters)


def match_sentences(verdict: TaskVerdict) -> list[str]:
    """What equal parameters change."""
    if verdict.match is None:
        return []
    kinds = {(each.variant, each.test_set): each.verdict for each in verdict.comparisons}
    lines = []
    for name, matched in verdict.match.variants.items():
        line = f"{name} has {percent_change(matched.before)} parameters"
        if matched.variant is None:
            lines.append(f"{line}: it is judged at equal parameters.")
            continue
        line += f"; with {matched.field} = {matched.value} instead of {matched.original or 0:,.0f},"
        line += f" {percent_change(matched.after)}."
        for (variant, test_set), kind in kinds.items():
            other = kinds.get((matched.variant, test_set), kind)
            if variant == name and other != kind:
                words = VERDICTS[kind], VERDICTS[other]
                line += f" On {test_set} it is {words[0]} at the equal recipe, {words[1]} at equal parameters."
        lines.append(line)
    return lines
