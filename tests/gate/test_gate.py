"""The gate: keep, discard or one more pair; its ledger; and how often it is wrong over hundreds of proposals."""

from __future__ import annotations

import json
import math
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loops import LOOPS, RULES, Loop, gate_of, greedy, rates

import fairtrial as ft
from fairtrial.gate.actions import candidate_recipe, scores_of
from fairtrial.gate.decision import Answer, GateRule, Why, correlation_allowed, gain_test, judge_pairs
from fairtrial.gate.ledger import Ledger, Scored
from sampling import cases

Call = Callable[..., Any]
RULE = GateRule()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    ft.gate_new(tmp_path / "ideas.jsonl", "val_loss", incumbent="base")
    return tmp_path / "ideas.jsonl"


def noisy(gain: float, count: int, seed: int = 0) -> tuple[dict[int, float], dict[int, float]]:
    chance = np.random.default_rng(seed)
    base = 3.28 + chance.normal(0, 0.01, count)
    return dict(enumerate(base - gain + chance.normal(0, 0.01, count))), dict(enumerate(base))


# evidence


def test_evidence_of_a_gain_is_what_integration_over_the_prior_gives() -> None:
    """Twice the Bayes factor whose prior on the standardized gain is the half of N(0, 1) above zero."""
    gains = np.random.default_rng(3).normal(0.8, 1, 9)
    test = gain_test(gains.tolist())
    t, n = gains.mean() / gains.std(ddof=1) * 3, 9
    sizes = np.linspace(0, 9, 3001)
    scales = np.exp(np.linspace(-3, 3, 2001))[:, None]  # the standard deviation, with the prior 1 / s
    squares = (gains**2).sum() - 2 * sizes * scales * gains.sum() + n * (sizes * scales) ** 2
    likelihood = np.exp(-squares / (2 * scales**2)) / scales**n
    against = np.exp(-(gains**2).sum() / (2 * scales[:, 0] ** 2)) / scales[:, 0] ** n
    prior = 2 * np.exp(-(sizes**2) / 2) / math.sqrt(2 * math.pi)
    logs = np.log(scales[:, 0])
    above = np.trapezoid(np.trapezoid(likelihood * prior, sizes, axis=1), logs)
    assert test.evidence_of_gain() == pytest.approx(above / np.trapezoid(against, logs), rel=1e-3), t


def test_without_a_gain_evidence_rarely_ever_reaches_its_bound() -> None:
    chance, reached = np.random.default_rng(1), 0
    for _ in range(300):
        gains = chance.normal(0, 1, 60)
        reached += any(gain_test(gains[:n].tolist()).evidence_of_gain() >= 20 for n in range(2, 61))
    assert reached / 300 <= 0.05


def test_a_clear_gain_is_kept_and_a_clear_loss_or_a_copy_discarded() -> None:
    level = RULE.level(1, 0)
    assert judge_pairs([1.0, 1.1, 0.9, 1.0, 1.05], RULE, level).answer == Answer.KEEP
    assert judge_pairs([-1.0, -1.1, -0.9], RULE, level).answer == Answer.DISCARD
    assert judge_pairs([0.0, 0.0, 0.0], RULE, level).why == Why.HOPELESS
    assert judge_pairs([1.0], RULE, level).answer == Answer.MORE
    assert judge_pairs([], RULE, level).pairs == 0


def test_no_proposal_takes_more_pairs_than_it_may() -> None:
    few = GateRule(most_pairs=4)
    gains = np.random.default_rng(0).normal(0.6, 1, 50).tolist()
    assert judge_pairs(gains, few, few.level(200, 0)).pairs <= 4


def test_levels_of_all_proposals_sum_to_alpha_and_grow_with_what_was_kept() -> None:
    levels = [RULE.level(number, 0) for number in range(1, 200_000)]
    assert 0.09 * RULE.alpha < RULE.alpha - sum(levels) + 0.1 * RULE.alpha
    assert sum(levels) < RULE.alpha
    assert RULE.level(7, 3) == pytest.approx(4 * RULE.level(7, 0))
    assert GateRule(control="fwer").level(7, 3) == RULE.level(7, 0)


@cases("correlation", [0.0, 0.3, 0.6])
def test_the_correlation_of_neighbouring_pairs_is_measured_whatever_the_gains_are(correlation: float) -> None:
    chance, luck, proposals = np.random.default_rng(2), 0.0, []
    for number in range(400):
        gains = []
        for _ in range(5):
            luck = correlation * luck + math.sqrt(1 - correlation**2) * chance.normal()
            gains.append(5.0 * (number % 3) + luck)
        proposals.append(gains)
    assert correlation_allowed(proposals) == pytest.approx(correlation, abs=0.08)
    assert correlation_allowed([]) > 0.3  # unknown: widened, until pairs show that they are independent
    assert correlation_allowed([[1.0], [2.0, 2.0, 2.0]]) <= 0.9


# over hundreds of proposals


@cases(
    "name",
    [
        "one in ten is real",
        "one in ten, an agent that follows luck",
        "nothing is real, a pair's luck like the last one's (0.3)",
    ],
)
def test_few_kept_proposals_are_false(name: str) -> None:
    """A sample; the whole table is in the slow tier."""
    done = rates(LOOPS[name], gate_of(RULE), 2, 100)
    assert done.false_share <= 0.1 + 2 * 0.15  # so few loops know it roughly
    assert done.most <= 40
    assert done.pairs <= 8


def test_a_greedy_loop_keeps_mostly_luck() -> None:
    """The control: the same simulation does find false keeps."""
    assert rates(Loop(), greedy, 2, 100).false_share > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LOOPS)
def test_the_stated_error_holds_in_every_loop(name: str, rule: str) -> None:
    done = rates(LOOPS[name], gate_of(RULES[rule]), 100)
    error = done.any_false if RULES[rule].control == "fwer" else done.false_share
    assert error <= 0.1
    assert done.pairs <= 8
    if LOOPS[name].gain == 1 and LOOPS[name].real and not LOOPS[name].alike and RULES[rule].control == "fdr":
        assert done.found >= 0.6


# the ledger


def test_scores_come_in_any_order_and_give_the_same_decision(tmp_path: Path) -> None:
    ours, theirs = noisy(0.03, 6)
    for name, order in (("a", range(6)), ("b", [3, 1, 5, 0, 2, 4])):
        path = tmp_path / f"{name}.jsonl"
        ft.gate_new(path, "val_loss", incumbent="base")
        for seed in order:
            if seed % 2:
                ft.gate_add(path, "base", scores={seed: theirs[seed]})
                gate = ft.gate_add(path, "muon", seed=seed, score=ours[seed])
            else:
                ft.gate_add(path, "muon", seed=seed, score=ours[seed])
                gate = ft.gate_add(path, "base", scores={seed: theirs[seed]})
            if gate.answer == Answer.KEEP:
                break
        assert gate.incumbent == "muon", name


def test_a_new_incumbent_is_judged_by_new_seeds(ledger: Path) -> None:
    ours, theirs = noisy(0.03, 10)
    gate = ft.gate_add(ledger, "muon", scores=ours, incumbent_scores=theirs)
    assert (gate.answer, gate.incumbent) == (Answer.KEEP, "muon")
    used = gate.proposals[0].seeds
    with pytest.raises(ft.BadInput, match=f"seed {used[0]} was already used to judge muon"):
        ft.gate_add(ledger, "rope", seed=used[0], score=3.2)
    fresh = gate.next_seed
    assert fresh not in used
    gate = ft.gate_add(ledger, "rope", seed=fresh, score=3.2, incumbent_score=3.21)
    assert gate.proposals[1].incumbent == "muon"
    assert 0 < gate.cumulative < 0.03 * 2


def test_a_score_is_never_replaced(ledger: Path) -> None:
    gate = ft.gate_add(ledger, "muon", seed=1, score=3.1)
    assert gate.next_command.endswith("--seed 1 --incumbent-score SCORE")
    ft.gate_add(ledger, "muon", seed=1, score=3.1)  # the same again is no second run
    with pytest.raises(ft.BadInput, match=r"already has the score 3\.1"):
        ft.gate_add(ledger, "muon", seed=1, score=3.0)
    with pytest.raises(ft.BadInput, match="must be a number"):
        ft.gate_add(ledger, "muon", seed=2, score=math.nan)
    with pytest.raises(ft.BadInput, match="finite"):
        ft.gate_add(ledger, "muon", scores={2: math.inf})


def test_others_that_wait_end_when_a_candidate_is_kept(ledger: Path) -> None:
    ft.gate_add(ledger, "slow", seed=90, score=3.2, incumbent_score=3.3)
    ours, theirs = noisy(0.03, 10)
    gate = ft.gate_add(ledger, "muon", scores=ours, incumbent_scores=theirs)
    assert {each.candidate: each.why for each in gate.proposals}["slow"] == Why.SUPERSEDED


def test_gains_are_confirmed_by_fresh_pairs_and_test_sets_opened_once(ledger: Path) -> None:
    ours, theirs = noisy(0.03, 10)
    ft.gate_add(ledger, "muon", scores=ours, incumbent_scores=theirs)
    fresh, old = noisy(0.03, 4, seed=1)
    shift = {seed + 50: value for seed, value in fresh.items()}
    gate = ft.gate_confirm(ledger, scores=shift, first_scores={seed + 50: value for seed, value in old.items()})
    assert gate.confirmed is not None
    assert gate.confirmed.low is not None
    assert gate.confirmed.low < 0.03 < (gate.confirmed.high or 0)
    with pytest.raises(ft.BadInput, match="used before"):
        ft.gate_confirm(ledger, scores={0: 3.0, 1: 3.0}, first_scores={0: 3.1, 1: 3.1})
    gate = ft.gate_final(ledger, scores=fresh, first_scores=old)
    assert gate.tests is not None
    with pytest.raises(ft.BadInput, match="opened already"):
        ft.gate_final(ledger, scores=fresh, first_scores=old)
    with pytest.raises(ft.BadInput, match="no further proposals"):
        ft.gate_add(ledger, "late", seed=200, score=3.0)


@cases("damage", ["edit", "swap", "remove", "cut", "add"])
def test_a_ledger_that_was_tampered_with_is_refused(tmp_path: Path, damage: str) -> None:
    ledger = tmp_path / f"{damage}.jsonl"
    ft.gate_new(ledger, "val_loss", incumbent="base")
    for seed in range(4):
        ft.gate_add(ledger, "muon", seed=seed, score=3.2 + seed / 100, incumbent_score=3.3)
    lines = ledger.read_text().splitlines()
    lines[4] = lines[4].replace("3.3", "3.4") if damage == "edit" else lines[4]
    if damage == "swap":
        lines[2], lines[3] = lines[3], lines[2]
    lines = lines[:3] + lines[4:] if damage == "remove" else lines[:-2] if damage == "cut" else lines
    lines += [lines[-1]] if damage == "add" else []
    ledger.write_text("\n".join(lines) + "\n")
    with pytest.raises(ft.BadInput, match=r"line|written"):
        ft.gate(ledger)


def write_many(path: Path, first: int) -> None:
    for seed in range(first, first + 8):
        with Ledger.writing(path) as book:
            book.propose(f"candidate {first}")
            book.score(Scored(f"candidate {first}", seed, 3.0))


def test_two_writers_lose_nothing(ledger: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_many, args=(ledger, first)) for first in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    book = Ledger.read(ledger)
    assert {name: len(each.ours) for name, each in book.proposals.items()} == {"candidate 0": 8, "candidate 100": 8}


# the command line


def test_the_command_ends_with_the_decision_as_its_exit_code(ledger: Path, fairtrial: Call) -> None:
    assert fairtrial("gate", ledger).code == 0
    said = fairtrial("gate", "add", ledger, "--candidate", "muon", "--seed", 4, "--score", 3.2791)
    assert said.code == 11
    assert "Run one more pair" in said.out.replace("\n", " ")
    scores = [word for seed, loss in noisy(0.03, 8)[0].items() for word in ("--scores", f"{seed + 10}={loss}")]
    theirs = [
        word for seed, loss in noisy(0.03, 8)[1].items() for word in ("--incumbent-scores", f"{seed + 10}={loss}")
    ]
    said = fairtrial("gate", "add", ledger, "--candidate", "muon", *scores, *theirs, "--json")
    answer = json.loads(said.out)
    assert (said.code, answer["answer"]) == (0, "keep")
    said = fairtrial("gate", "add", ledger, "--candidate", "noise", "--scores", "70=9", "--scores", "71=9.1",
                     "--incumbent-scores", "70=3.2", "--incumbent-scores", "71=3.2")  # fmt: skip
    assert said.code == 10
    assert fairtrial("gate", "add", ledger, "--candidate", "x", "--seed", 3).code == 2
    page = ledger.parent / "page.html"
    assert fairtrial("gate", "show", ledger, "--out", page).code == 10
    assert "muon" in page.read_text()


def test_results_of_any_trainer_are_read(ledger: Path, fairtrial: Call) -> None:
    ours, theirs = noisy(0.03, 8)
    rows = [f"{name},{seed},{loss}" for name, side in (("base", theirs), ("muon", ours)) for seed, loss in side.items()]
    (ledger.parent / "runs.csv").write_text("\n".join(["variant,seed,val_loss", *rows]))
    assert ft.gate_add(ledger, "muon", results=ledger.parent / "runs.csv").answer == Answer.KEEP


def test_the_test_sets_answer_for_new_items_where_single_items_are_known(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    hard = chance.normal(0, 0.3, 60)  # items differ in what the change does to them
    lines = ["variant,seed,item,correct"]
    for name, gain in (("base", 0.0), ("muon", 0.15)):
        for seed in range(5):
            right = chance.random(60) < np.clip(0.5 + gain + hard * (gain > 0), 0, 1)
            lines += [f"{name},{seed},{item},{int(own)}" for item, own in enumerate(right)]
    (tmp_path / "tests.csv").write_text("\n".join(lines))
    intervals = {}
    for kind in ("items", "runs"):
        ledger = tmp_path / f"{kind}.jsonl"
        ft.gate_new(ledger, "accuracy", incumbent="base")
        ours = {seed: 0.7 + seed % 3 / 100 for seed in range(10, 20)}
        theirs = {seed: 0.5 + seed % 4 / 100 for seed in range(10, 20)}
        assert ft.gate_add(ledger, "muon", scores=ours, incumbent_scores=theirs).answer == Answer.KEEP
        table = scores_of(str(tmp_path / "tests.csv"))
        how = {"results": tmp_path / "tests.csv"} if kind == "items" else {"scores": table["muon"]}
        final = ft.gate_final(ledger, **how, **({} if kind == "items" else {"first_scores": table["base"]}))
        assert final.new_items == (kind == "items")
        assert "Selection cost" in str(final)
        intervals[kind] = final.tests
    items, runs = intervals["items"], intervals["runs"]
    assert items.estimate == pytest.approx(runs.estimate)
    assert items.high - items.low > runs.high - runs.low


@pytest.mark.second
def test_own_trainings_open_their_test_sets_once(tmp_path: Path, course_folder: Path) -> None:
    ledger, recipe = tmp_path / "own.jsonl", tmp_path / "tiny.toml"
    small = ft.Recipe.load("classify").with_(layers=1, width=16, hidden=16, steps=3, batch=8)
    recipe.write_text(small.to_toml())
    ft.gate_new(ledger, task="classify", data=course_folder, recipe=str(recipe), incumbent="learned")
    with Ledger.writing(ledger) as book:
        book.propose("rope", recipe=candidate_recipe(book, "rope")[1])
        for seed in range(8):
            if book.incumbent == "rope":
                break
            book.score(Scored("learned", seed, 50 + seed % 3))
            book.score(Scored("rope", seed, 70 + 2 * (seed % 2)))
            book.settle()
    final = ft.gate_final(ledger, pairs=3, jobs=1)
    assert (final.incumbent, final.new_items) == ("rope", True)
    records = sorted((tmp_path / "own-runs").rglob("result.json"))
    assert len(records) == 6
    assert all(json.loads(path.read_text())["tests"] for path in records)


@pytest.mark.second
def test_own_trainings_go_pair_by_pair_on_one_validation_set(tmp_path: Path, course_folder: Path) -> None:
    ledger = tmp_path / "own.jsonl"
    recipe = tmp_path / "tiny.toml"
    small = ft.Recipe.load("classify").with_(layers=1, width=16, hidden=16, steps=3, batch=8)
    recipe.write_text(small.to_toml())
    ft.gate_new(ledger, task="classify", data=course_folder, recipe=str(recipe), incumbent="learned", most_pairs=2)
    gate = ft.gate_run(ledger, "rope", jobs=1)
    assert gate.answer == Answer.DISCARD
    assert gate.proposals[0].pairs == 2
    runs = sorted((tmp_path / "own-runs").rglob("result.json"))
    assert len(runs) == 4
    items = {json.loads(path.read_text())["validation"]["items"] for path in runs}
    assert len(items) == 1
    assert not any(json.loads(path.read_text())["tests"] for path in runs), "test sets stay sealed"
    leak = ft.gate_run(ledger, "reweight:over=batch", jobs=1)
    assert (leak.answer, leak.current and leak.current.why) == (Answer.DISCARD, Why.AUDIT)
