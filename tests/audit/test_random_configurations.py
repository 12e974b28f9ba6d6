"""No honest part is ever flagged, whatever the shape and whatever it is combined with."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from audits import HONEST, UNTRAINED, failed

from fairtrial.audit.run import audit
from fairtrial.audit.subject import AUDITED, CALLS, Plan, subject_of
from fairtrial.errors import BadInput
from fairtrial.model.part import build_parts, parts
from fairtrial.recipe import PartChoice, Shape

NORMAL, SLOW = 12, 200
BLOCK = 20


def options(name: str, rng: random.Random) -> dict[str, object]:
    if name in ("window", "block"):
        return {"size": rng.randint(2, 12)}
    if name == "alibi" and rng.random() < 0.3:
        return {"slope": rng.choice([0.25, 1.0])}
    return {}


def configuration(number: int) -> Plan:
    rng = random.Random(number)
    heads = rng.randint(1, 4)
    names = list(dict.fromkeys([rng.choice(HONEST), rng.choice(HONEST)]))
    shape = Shape(
        layers=max(rng.randint(1, 3), 1 + ("value-residual" in names)),  # which needs two
        heads=heads,
        width=heads * rng.choice([2, 4, 6, 8]),
        length=rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 33, 64]),
        hidden=rng.choice([4, 16, 24]),
        classifier_hidden=rng.choice([4, 10]),
        activation=rng.choice(["relu", "gelu", "silu"]),
        norm=rng.choice(["layer", "rms"]),
        qkv_bias=rng.random() < 0.5,
        tied=rng.random() < 0.3,
        attention_dropout=rng.choice([0.0, 0.2]),
    )
    choices = tuple(PartChoice(name=name, options=options(name, rng)) for name in names)
    try:
        build_parts(choices, shape, seed=number)
    except BadInput:  # the two do not combine
        choices = choices[:1]
    task = "lm" if any(parts.find(choice.name).decoder_only for choice in choices) else rng.choice(AUDITED)
    return Plan(task, shape, choices, seed=number)


def ensure_unflagged(number: int, only: list[str], calls: int = CALLS) -> None:
    plan = configuration(number)
    findings = audit(replace(subject_of(plan), calls=calls), only=only)
    assert findings
    assert failed(findings) == {}, plan


@pytest.mark.parametrize("number", range(NORMAL))
def test_an_honest_configuration_is_not_flagged(number: int) -> None:
    ensure_unflagged(number, UNTRAINED, calls=20)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(NORMAL, NORMAL + SLOW, BLOCK))
def test_honest_configurations_are_not_flagged_in_a_long_run(first: int) -> None:
    for number in range(first, first + BLOCK):
        ensure_unflagged(number, [])


def test_the_configurations_are_many_kinds() -> None:
    plans = [configuration(number) for number in range(NORMAL + SLOW)]
    assert {choice.name for plan in plans for choice in plan.choices} == set(HONEST)
    assert {plan.shape.heads for plan in plans} == {1, 2, 3, 4}
    assert {plan.shape.layers for plan in plans} == {1, 2, 3}
    assert {1, 64} <= {plan.shape.length for plan in plans}
    assert sum(len(plan.choices) == 2 for plan in plans) > len(plans) / 3
