"""From outcomes to the verdict file and its first sentences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairtrial.errors import BadInput
from fairtrial.report.render import prose_lines
from fairtrial.results import verdict_tables
from fairtrial.results.sentences import VOCABULARIES_DIFFER, score_words
from fairtrial.results.study import from_json, to_json
from fairtrial.results.values import (
    AuditLevel,
    AuditSummary,
    Comparison,
    Failure,
    InterimLook,
    Metric,
    OwnCode,
    TaskVerdict,
    TrainingEnd,
    TrainingEndKind,
)
from fairtrial.results.verdict_tables import first_screen
from fairtrial.statistics.multiplicity import LOOKS
from fairtrial.statistics.outcomes import (
    EXACT,
    NEAR,
    SetOutcomes,
    TaskOutcomes,
    Vocabulary,
    score,
    stack_outcomes,
)
from fairtrial.statistics.verdict import judge_study, judge_task

ITEMS, SEEDS = 400, 8
IMPROVING, SETTLED = TrainingEndKind.STILL_IMPROVING, TrainingEndKind.SETTLED


def classifier(
    share: float, seed: int, copies: np.ndarray | None = None, seeds: int = SEEDS, first: int = 0
) -> SetOutcomes:
    """Right on copies nearly always, else with the given share."""
    chance = np.random.default_rng(seed)
    labels = np.arange(ITEMS) % 3
    shares = np.full(ITEMS, share) if copies is None else np.where(copies, 0.99, share)
    rows = {}
    for number in range(first, first + seeds):
        right = chance.random(ITEMS) < shares
        guess = np.where(right, labels, (labels + 1) % 3)
        rows[number] = {"label": labels, "guess": guess, "log_p": np.where(right, -0.2, -1.5)}
    return stack_outcomes(rows)


def language(level: float, seed: int, items: int = 60) -> dict[str, SetOutcomes]:
    chance = np.random.default_rng(seed)
    tokens = np.random.default_rng(0).integers(5, 40, items)
    found = {}
    for place in ("obama", "wbush"):
        facts = {"tokens": tokens, "bytes": 5 * tokens, "unknown": tokens // 20}
        rows = {number: {"nll": tokens * chance.normal(level, 0.1, items), **facts} for number in range(SEEDS)}
        found[place] = stack_outcomes(rows)
    return found


def classify(**changes: Any) -> TaskOutcomes:
    variants = {
        "learned": {"test": classifier(0.6, 1)},
        "rope": {"test": classifier(0.75, 2)},
        "alibi": {"test": classifier(0.6, 3)},
    }
    task = TaskOutcomes(task="classify", baseline="learned", least_difference=1.0, variants=variants)
    return replace(task, **changes)


def row(entry: TaskVerdict, variant: str, place: str = "test") -> Comparison:
    return next(each for each in entry.comparisons if (each.variant, each.test_set) == (variant, place))


def test_the_file_is_plain_json_and_complete() -> None:
    verdict = judge_study("positions", {"classify": classify(), "lm": lm()})
    again = json.loads(json.dumps(to_json(verdict), allow_nan=False))
    assert from_json(again) == verdict
    assert (verdict.baseline, verdict.look) == ("learned", None)
    entry = verdict.tasks["classify"]
    assert (entry.metric, entry.seeds) == (Metric("accuracy", "points", True), tuple(range(SEEDS)))
    assert len(entry.scores["rope"]["test"]["all"].by_seed) == SEEDS


def lm(**changes: Any) -> TaskOutcomes:
    variants = {"learned": language(6.0, 1), "window": language(5.9, 2)}
    return replace(TaskOutcomes(task="lm", baseline="learned", least_difference=0.01, variants=variants), **changes)


def test_a_clear_gain_is_told_with_its_figures() -> None:
    entry = judge_task(classify())
    found = row(entry, "rope")
    assert found.verdict == "better"
    truth = 100 * (0.75 - 0.6)
    assert found.difference.low < truth < found.difference.high
    assert re.match(r"rope is better than learned on test: accuracy 1\d\.\d to 1\d\.\d points higher", found.sentence)
    assert "after correction for 2 comparisons; 8 seeds, 400 items" in found.sentence
    assert row(entry, "alibi").verdict == "undecided"
    assert found.share_of_seeds_better.estimate == 1
    assert sum(found.variance_shares.values()) == pytest.approx(1)


def test_perplexities_come_as_ratios() -> None:
    entry = judge_task(lm())
    found = row(entry, "window", "average over 2 test sets")
    assert found.verdict == "better"
    assert found.shown.estimate == pytest.approx(100 * np.expm1(found.difference.estimate))
    assert found.shown.low < 100 * np.expm1(-0.1) < found.shown.high < 0
    score = entry.scores["learned"]["obama"]["all"]
    outcomes = lm().variants["learned"]["obama"]
    each = np.exp(outcomes["nll"].sum(1) / outcomes["tokens"].sum(1))
    assert score.by_seed == pytest.approx(each)
    assert score.mean.estimate == pytest.approx(np.exp(np.log(each).mean()))
    assert score.mean.low < score.mean.estimate < score.mean.high


def test_one_question_is_judged_and_each_test_set_is_exploratory() -> None:
    verdict = judge_study("window", {"lm": lm()})
    (found,) = verdict.comparisons
    own = [each for each in verdict.tasks["lm"].exploratory if each.metric == found.metric]
    assert {each.test_set for each in own} == {"obama", "wbush"}
    assert all(each.q is not None and each.verdict == "undecided" for each in own)
    assert found.difference.estimate == pytest.approx(np.mean([each.difference.estimate for each in own]))
    (told,) = [line for line in verdict.text if "window" in line]
    assert told.startswith("window is better than learned on average over 2 test sets: perplexity ")
    assert "% lower (95% interval" in told


def test_the_mean_over_test_sets_varies_as_its_parts_do() -> None:
    """Two independent test sets of the same kind: half the variance of items, the same variance of seeds."""
    chance = np.random.default_rng(0)
    luck, likings = chance.normal(0, 1, (SEEDS, 1)), chance.normal(0, 20, (2, 1, ITEMS))
    metric, weight = Metric("score", "score", True), np.ones((SEEDS, ITEMS))
    noise = chance.normal(0, 1, (2, SEEDS, ITEMS))
    sets = {
        name: SetOutcomes(tuple(range(SEEDS)), {"value": luck + likings[n] + noise[n], "weight": weight}, metric=metric)
        for n, name in enumerate(("one", "other"))
    }
    flat = {name: replace(each, arrays={"value": 0 * weight, "weight": weight}) for name, each in sets.items()}
    task = TaskOutcomes(task="score", baseline="flat", least_difference=0.1, variants={"flat": flat, "new": sets})
    both, alone = (judge_task(replace(task, endpoint=name)).comparisons[0] for name in (None, "one"))
    assert (both.test_set, alone.test_set) == ("average over 2 test sets", "one")
    assert both.components.seed == pytest.approx(alone.components.seed, rel=0.1)
    shares = both.variance_shares["item"] / both.variance_shares["seed"]
    assert shares == pytest.approx(alone.variance_shares["item"] / alone.variance_shares["seed"] / 2, rel=0.2)


def test_an_endpoint_that_does_not_exist_is_refused_kindly() -> None:
    with pytest.raises(BadInput, match="no test set is called 'obma'"):
        judge_task(lm(endpoint="obma"))


def test_too_few_seeds_are_told_once() -> None:
    few = {name: {"test": classifier(0.6, place, seeds=3)} for place, name in enumerate(("learned", "rope", "alibi"))}
    lines = judge_study("few", {"classify": classify(variants=few)}).text
    told = "is undecided: too few seeds, a verdict needs 5. So far: accuracy between"
    for name, line in zip(("rope", "alibi"), lines[:2], strict=True):
        assert line.startswith(f"{name} versus learned {told}")


def test_holm_is_over_all_claims_of_the_study() -> None:
    verdict = judge_study("both", {"classify": classify(), "lm": lm()})
    p = sorted(each.p for each in verdict.comparisons)
    assert [each.family for each in verdict.comparisons] == [3, 3, 3]
    assert sorted(each.p_adjusted for each in verdict.comparisons)[0] == pytest.approx(3 * p[0])


def test_copies_in_train_move_the_verdict_to_clean_items() -> None:
    status = np.zeros(ITEMS, int)
    status[:200], status[200:210] = EXACT, NEAR
    variants = {
        "learned": {"test": classifier(0.5, 1, status > 0)},
        "rope": {"test": classifier(0.5, 2, status > 0)},
    }
    verdict = judge_study("copies", {"classify": classify(variants=variants, status={"test": status})})
    entry = verdict.tasks["classify"]
    facts = entry.sets["test"]
    assert (facts.exact, facts.near, facts.clean, facts.subset) == (200, 10, 190, "clean")
    assert row(entry, "rope").items == 190
    scores = entry.scores["learned"]["test"]
    assert scores["contaminated"].mean.estimate > 95 > 60 > scores["clean"].mean.estimate
    assert {each.subset for each in entry.exploratory} >= {"all", "contaminated"}
    told = "On test, 210 of 400 items also occur in the training set (10 of them as near duplicates)"
    assert any(line.startswith(told) for line in verdict.text)


def test_a_few_copies_change_nothing() -> None:
    status = np.zeros(ITEMS, int)
    status[:4] = EXACT
    entry = judge_task(classify(status={"test": status}))
    assert entry.sets["test"].subset == "all"
    status[:5] = EXACT
    assert judge_task(classify(status={"test": status})).sets["test"].subset == "clean"


def test_where_every_item_is_a_copy_nothing_can_be_judged() -> None:
    copies = classify(status={"test": np.full(ITEMS, EXACT)})
    for task in (copies, replace(copies, clusters={"test": np.arange(ITEMS) // 4})):
        assert row(judge_task(task), "rope").verdict == "not_comparable"


def test_what_scores_the_same_as_a_baseline_is_not_called_worse() -> None:
    """A network that has learnt nothing says the majority's class, always."""
    same = classifier(0.3, 5)
    variants = {"learned": {"test": same}, "rope": {"test": same}}
    lines = judge_study("collapsed", {"classify": classify(variants=variants, baselines={"majority": {"test": same}})})
    assert lines.text[1] == "learned and rope: no seed beat the largest class on test."
    assert lines.text[2].startswith("All variants score the same as majority")
    assert {each.verdict for each in lines.tasks["classify"].baseline_comparisons} == {"undecided"}


def test_losing_to_a_baseline_is_the_first_limit() -> None:
    bayes = {"naive bayes": {"test": classifier(0.95, 9, seeds=1)}, "majority": {"test": classifier(0.3, 10)}}
    verdict = judge_study("positions", {"classify": classify(baselines=bayes)})
    basis = "Accuracy (higher is better) on test; 95% intervals; p corrected for 2 comparisons; 8 seeds, 400 items."
    assert verdict.text[2:4] == (basis, "All variants score below naive bayes (no network) on test.")
    assert [sentence.limit for sentence in verdict.sentences[:4]] == [False, False, False, True]
    rows = verdict.tasks["classify"].baseline_comparisons
    assert {each.verdict for each in rows if each.baseline == "naive bayes"} == {"worse"}
    assert {each.verdict for each in rows if each.baseline == "majority"} == {"better"}


def test_one_seed_below_a_baseline_hears_of_it() -> None:
    one = {name: {"test": classifier(0.6, place, seeds=1)} for place, name in enumerate(("learned", "rope"))}
    bayes = {"naive bayes": {"test": classifier(0.95, 9, seeds=1)}}
    lines = judge_study("one", {"classify": classify(variants=one, baselines=bayes)}).text
    assert lines[1].endswith("(no network) on test (difference not significant).")


def test_beating_the_baseline_is_told_later() -> None:
    bayes = {"naive bayes": {"test": classifier(0.3, 9)}}
    lines = judge_study("positions", {"classify": classify(baselines=bayes)}).text
    assert "beats naive bayes" not in lines[0]
    assert any(line.startswith("All variants beat naive bayes") for line in lines)


def test_own_training_code_is_named_and_what_is_compared() -> None:
    own = AuditSummary(AuditLevel.PASS, own_code=(OwnCode.OPTIMIZER, OwnCode.LOSS))
    lines = judge_study("positions", {"classify": classify(audits={"rope": own})}).text
    said = "Own training code: rope uses its own optimizer and its own loss."
    assert any(f"{said} What is compared is network, optimizer and loss" in line for line in lines)


def test_a_failed_leak_audit_blocks_the_verdict_unless_accepted() -> None:
    red = AuditSummary(AuditLevel.RED, ("M3 no future",))
    bayes = {"naive bayes": {"test": classifier(0.3, 9)}}
    entry = judge_task(classify(audits={"rope": red}, baselines=bayes))
    assert row(entry, "rope").verdict == "not_comparable"
    assert "rope failed its leak audit (M3 no future)" in row(entry, "rope").sentence
    assert row(entry, "alibi").family == 1
    beaten = {each.variant: each.verdict for each in entry.baseline_comparisons}
    assert beaten == {"learned": "better", "rope": "not_comparable", "alibi": "better"}
    unknown = judge_task(classify(audits={"rope": replace(red, level=AuditLevel.UNAUDITED)}))
    assert row(unknown, "rope").verdict == "not_comparable"
    assert "rope could not be audited" in row(unknown, "rope").sentence
    accepted = judge_task(classify(audits={"rope": replace(red, accepted=True)}))
    assert row(accepted, "rope").verdict == "better"
    assert "FAILED its leak audit (M3 no future)" in row(accepted, "rope").sentence


def test_a_red_baseline_blocks_all() -> None:
    red = AuditSummary(AuditLevel.RED, ("M7",))
    entry = judge_task(classify(audits={"learned": red}))
    assert {each.verdict for each in entry.comparisons} == {"not_comparable"}


def test_a_look_has_its_own_alpha() -> None:
    verdict = judge_study("look", {"classify": classify()}, look=LOOKS[0])
    assert verdict.look == InterimLook(5, 0.005, 10)
    assert row(verdict.tasks["classify"], "rope").verdict == "better"
    assert not verdict.clear  # alibi is still open
    only = {name: classify().variants[name] for name in ("learned", "rope")}
    assert judge_study("look", {"classify": classify(variants=only)}, look=LOOKS[0]).clear


def test_what_is_clear_at_five_per_cent_is_open_at_the_first_look() -> None:
    variants = {"learned": {"test": classifier(0.6, 1)}, "rope": {"test": classifier(0.665, 2)}}
    fixed, first = (judge_task(classify(variants=variants, look=look)) for look in (None, LOOKS[0]))
    assert LOOKS[0].alpha < row(fixed, "rope").p_adjusted < 0.05
    assert (row(fixed, "rope").verdict, row(first, "rope").verdict) == ("better", "undecided")


def test_the_same_variant_under_two_names_shows_no_difference() -> None:
    variants = {"one": {"test": classifier(0.6, 1)}, "two": {"test": classifier(0.6, 5, first=100)}}
    entry = judge_task(classify(variants=variants, baseline="one"))
    found = row(entry, "two")
    assert found.verdict == "undecided"
    assert "share no seeds" in found.sentence


def test_three_seeds_are_refused_a_verdict() -> None:
    variants = {"learned": {"test": classifier(0.6, 1, seeds=3)}, "rope": {"test": classifier(0.9, 2, seeds=3)}}
    found = row(judge_task(classify(variants=variants)), "rope")
    assert (found.verdict, found.reasons[0].code) == ("undecided", "too_few_seeds")
    assert found.p_adjusted is None
    assert "is undecided on test: too few seeds, a verdict needs 5" in found.sentence


def test_one_seed_gives_scores_with_intervals_over_items_and_no_verdict() -> None:
    variants = {"learned": {"test": classifier(0.6, 1, seeds=1)}, "rope": {"test": classifier(0.9, 2, seeds=1)}}
    entry = judge_task(classify(variants=variants))
    assert row(entry, "rope").too_few_seeds
    assert row(entry, "rope").difference.low is None
    score = entry.scores["rope"]["test"]["all"]
    assert score.mean.low < score.mean.estimate < score.mean.high


def test_a_perfect_score_is_not_taken_as_certain() -> None:
    variants = {"learned": {"test": classifier(1.1, 1)}, "rope": {"test": classifier(1.1, 2)}}
    entry = judge_task(classify(variants=variants))
    score = entry.scores["rope"]["test"]["all"]
    assert (score.mean.estimate, score.mean.high) == pytest.approx((100, 100))
    assert 98 < score.mean.low < 100
    assert row(entry, "rope").verdict == "equivalent"


def test_clusters_widen_the_interval() -> None:
    chance = np.random.default_rng(0)
    speeches = np.repeat(np.arange(20), 20)
    liking = np.clip(0.6 + chance.normal(0, 0.3, 20), 0, 1)[speeches]
    variants = {"learned": {"test": classifier(0.6, 1)}, "rope": {"test": _with_shares(liking)}}
    alone = row(judge_task(classify(variants=variants)), "rope")
    together = row(judge_task(classify(variants=variants, clusters={"test": speeches})), "rope")
    assert (together.items, together.groups, alone.groups) == (400, 20, None)
    assert "400 items in 20 groups" in together.sentence
    assert "With so few groups of test items (20)" in together.sentence
    assert together.difference.estimate == pytest.approx(alone.difference.estimate)
    assert together.difference.high - together.difference.low > 1.5 * (alone.difference.high - alone.difference.low)


def _with_shares(shares: np.ndarray) -> SetOutcomes:
    found = classifier(0.6, 1)
    right = np.random.default_rng(4).random((SEEDS, ITEMS)) < shares
    guess = np.where(right, found["label"], (found["label"] + 1) % 3)
    return SetOutcomes(found.seeds, {**found.arrays, "guess": guess})


def test_a_baseline_without_outcomes_is_refused_kindly() -> None:
    with pytest.raises(BadInput, match="'lerned' has no outcomes"):
        judge_task(classify(baseline="lerned"))


def test_failures_are_reported() -> None:
    failures = (Failure("rope", 3, "the loss is not finite"),)
    lines = judge_study("told", {"classify": classify(failures=failures)}).text
    assert "1 trial failed and is left out: rope (seed 3)." in lines


def test_one_mean_reads_the_same_however_it_was_summed() -> None:
    assert 86.85 != 86.85000000000001
    assert score_words("accuracy", 86.85) == score_words("accuracy", 86.85000000000001)


def collapsed(guess: int = 0) -> SetOutcomes:
    """Answers one class only, whatever the seed."""
    labels = np.arange(ITEMS) % 3
    row = {"label": labels, "guess": np.full(ITEMS, guess), "log_p": np.full(ITEMS, -1.1)}
    return stack_outcomes(dict.fromkeys(range(SEEDS), row))


def test_the_first_screen_answers_in_twelve_lines() -> None:
    """Five variants in a narrow terminal: an answer for each, what they rest on, and at most three limits."""
    levels = {"learned": 5.0, "rope": 4.8, "alibi": 4.8, "none": 5.0, "sinusoidal": 5.4}
    variants = {name: language(level, place) for place, (name, level) in enumerate(levels.items())}
    verdict = judge_study("positions", {"lm": lm(variants=variants)})
    shown = first_screen(verdict)
    verdicts = {each.variant: each.verdict.value for each in verdict.comparisons}
    assert [text.split()[0] for text in shown.sentences] == sorted(
        verdicts, key=lambda name: ["better", "worse", "equivalent", "undecided"].index(verdicts[name])
    )
    assert len(shown.basis) == 1
    assert len(shown.limits) <= 3
    assert len(set(shown.limits + shown.notes)) == len(shown.limits) + len(shown.notes)
    assert len(prose_lines(shown, 80)) <= 12


def test_equal_ignorance_is_not_called_no_difference() -> None:
    variants = {"learned": {"test": collapsed()}, "rope": {"test": collapsed()}}
    verdict = judge_study("blank", {"classify": classify(variants=variants)})
    assert verdict.text[1] == "learned and rope: every seed always gave the same answer on test."
    found = row(verdict.tasks["classify"], "rope")
    assert found.verdict == "not_comparable"
    assert found.reasons[0].code == "neither_learned"
    assert found.sentence == "rope and learned are not comparable on test: neither model has learned the task."
    (told,) = [line for line in verdict.text if "omparable" in line]
    assert told == found.sentence  # once, and nothing is said of a difference
    third = judge_study("blank", {"classify": classify(variants=variants | {"alibi": {"test": collapsed()}})})
    assert [line for line in third.text if "omparable" in line] == [
        "rope, alibi and learned are not comparable on test: none of these models has learned the task."
    ]


def test_one_side_that_learned_nothing_is_flagged_and_may_be_worse() -> None:
    variants = {"learned": {"test": classifier(0.75, 2)}, "rope": {"test": collapsed()}}
    verdict = judge_study("half blank", {"classify": classify(variants=variants)})
    assert verdict.text[1] == "rope: every seed always gave the same answer on test."
    assert row(verdict.tasks["classify"], "rope").verdict == "worse"


def test_a_language_model_that_knows_only_word_frequencies_has_not_learned() -> None:
    unigram = {name: SetOutcomes((0,), {key: array[:1] for key, array in found.arrays.items()})
               for name, found in language(6.0, 4).items()}  # fmt: skip
    variants = {"learned": language(6.5, 1), "window": language(5.0, 2)}
    verdict = judge_study("slow", {"lm": lm(variants=variants, baselines={"unigram": unigram})})
    assert verdict.text[1] == "learned: no seed beat a unigram model on any test set."
    assert {each.variant for each in verdict.tasks["lm"].unlearned} == {"learned"}


def test_training_that_was_too_short_or_too_long_is_told_first() -> None:
    short = [TrainingEnd(IMPROVING if seed < 6 else SETTLED, 90 + seed, 100) for seed in range(SEEDS)]
    long = [TrainingEnd(TrainingEndKind.OVERFITTED, 20 + 2 * seed, 1500) for seed in range(SEEDS)]
    some = [TrainingEnd(IMPROVING if seed < 4 else SETTLED, 90, 100) for seed in range(SEEDS)]
    ends = {"learned": some, "rope": short, "alibi": long}
    task = classify(training={name: dict(enumerate(by_seed)) for name, by_seed in ends.items()})
    verdict = judge_study("short", {"classify": task})
    underfitted, overfitted = verdict.text[3:5]  # half of the seeds of learned are not most
    assert underfitted.startswith("Underfitted: rope was still improving when training stopped")
    assert overfitted == "Overfitted: alibi was best long before training stopped, and worse since."


def test_with_different_vocabularies_everything_is_in_bits_per_byte() -> None:
    """Two variants share a vocabulary, the third hides more words: perplexity would rank it first."""

    def with_vocabulary(by_set: dict[str, SetOutcomes], name: str, **more: float) -> dict[str, SetOutcomes]:
        """`more`: further arrays, as shares of the nats."""
        known = Vocabulary("", name, (name,) * SEEDS)
        return {
            place: replace(
                found,
                arrays=found.arrays | {key: share * found["nll"] for key, share in more.items()},
                vocabulary=known,
            )
            for place, found in by_set.items()
        }

    variants = {
        "learned": with_vocabulary(language(5.0, 1), "all", spelling=0.0),
        "window": with_vocabulary(language(5.0, 2), "all", spelling=0.0),
        "hides": with_vocabulary(language(4.0, 3), "frequent", spelling=1.0, unknown_nll=0.1),
    }
    unigram = with_vocabulary(language(6.0, 4), "all", spelling=0.0)
    verdict = judge_study("vocabularies", {"lm": lm(variants=variants, baselines={"unigram": unigram})})
    task = verdict.tasks["lm"]
    assert VOCABULARIES_DIFFER in verdict.text
    assert (task.metric.name, task.metric.unit, task.vocabularies_differ) == ("bits per byte", "bits per byte", True)
    assert {found.metric.name for found in (*task.comparisons, *task.baseline_comparisons)} == {"bits per byte"}
    assert {found.verdict for found in task.comparisons if found.variant == "hides"} == {"worse"}
    said = " ".join(verdict.text) + verdict.to_text()
    assert "bits per byte" in said
    assert "% of perplexity" not in said
    for name, by_set in task.scores.items():
        found = by_set["obama"]["all"]
        assert found.mean.estimate == pytest.approx(found.bits_per_byte)
        assert (found.perplexity_without_unknown is not None) == (name == "hides")
    table = verdict_tables.scores(task)
    assert table is not None
    assert VOCABULARIES_DIFFER in table.note


def test_baselines_are_judged_by_the_rules_for_variants() -> None:
    """Two seeds beat nothing; at the first look p must be below its alpha."""
    two = {"learned": {"test": classifier(0.9, 1, seeds=2)}, "rope": {"test": classifier(0.9, 2, seeds=2)}}
    bayes = {"naive bayes": {"test": classifier(0.5, 9, seeds=1)}}
    entry = judge_study("two", {"classify": classify(variants=two, baselines=bayes)}).tasks["classify"]
    assert {found.verdict for found in entry.baseline_comparisons} == {"undecided"}
    close = {"naive bayes": {"test": classifier(0.69, 9, seeds=1)}}
    at_five, at_first = (
        judge_study("look", {"classify": classify(baselines=close)}, look=look).tasks["classify"]
        for look in (None, LOOKS[0])
    )
    rows = [
        next(found for found in entry.baseline_comparisons if found.variant == "rope") for entry in (at_five, at_first)
    ]
    assert LOOKS[0].alpha < rows[0].p_adjusted < 0.05
    assert [found.verdict for found in rows] == ["better", "undecided"]


def test_equivalence_is_corrected_over_the_family() -> None:
    """One variant alone is called the same; among ten such claims the same numbers are not enough."""
    rows = []
    for count in (1, 10):
        variants = {
            "learned": {"test": classifier(0.7, 1)},
            **{f"v{n}": {"test": classifier(0.7, 2)} for n in range(count)},
        }
        rows.append(judge_task(classify(variants=variants, least_difference=5.0)).comparisons[0])
    alone, among = rows
    assert among.detectable[1] > 1.2 * alone.detectable[1]  # at the level that decides
    assert alone.verdict == "equivalent"
    assert among.p_equivalent > 5 * alone.p_equivalent


def test_scores_do_not_vary_with_the_mix_of_classes() -> None:
    """Right on one class, wrong on another: the mix is part of the design, so the interval is that of the classes."""
    labels = np.repeat([0, 1], ITEMS // 2)
    chance = np.random.default_rng(3)
    right = chance.random((SEEDS, ITEMS)) < np.where(labels == 0, 0.97, 0.1)
    outcomes = SetOutcomes(tuple(range(SEEDS)), {"label": np.tile(labels, (SEEDS, 1)),
                           "guess": np.where(right, labels, 1 - labels), "log_p": np.zeros(right.shape)})  # fmt: skip
    shown = score("accuracy", outcomes, np.ones(ITEMS, bool))
    assert shown.mean.estimate == pytest.approx(100 * right.mean())
    assert shown.mean.high - shown.mean.low < 4  # the mix as chance would make it more than 8


def test_a_class_that_one_group_holds_joins_another() -> None:
    labels = np.repeat([0, 1, 2], [100, 100, 200])
    groups = np.r_[np.zeros(100), 1 + np.arange(300) // 10].astype(int)
    outcomes = classifier(0.6, 4)
    arrays = outcomes.arrays | {"label": np.tile(labels, (SEEDS, 1)), "guess": np.tile(labels, (SEEDS, 1))}
    arrays["guess"][:, ::3] = (arrays["guess"][:, ::3] + 1) % 3
    shown = score("accuracy", SetOutcomes(outcomes.seeds, arrays), np.ones(ITEMS, bool), groups)
    assert shown.mean.low < shown.mean.estimate < shown.mean.high


def test_a_dominant_group_is_named_by_what_it_counts() -> None:
    groups = np.r_[np.zeros(300), 1 + np.arange(ITEMS - 300) // 5].astype(int)
    line = row(judge_task(classify(clusters={"test": groups})), "rope").sentence
    assert "groups of test items (" in line or "are not comparable" in line
    spread = np.r_[np.zeros(100), 1 + np.arange(ITEMS - 100) // 10].astype(int)
    line = row(judge_task(classify(clusters={"test": spread})), "rope").sentence
    assert "in 31 groups of unequal size, which count as 12" in line
    assert "With so few groups of test items (12), the interval is rough." in line


def test_one_seed_of_independent_items_has_wilsons_interval() -> None:
    """One class, so that no class is a stratum: equal to scipy's, up to t for the normal quantile."""
    right = np.arange(ITEMS) < 0.9 * ITEMS
    arrays = {"label": np.zeros((1, ITEMS), int), "guess": np.where(right, 0, 1)[None]}
    shown = score("accuracy", SetOutcomes((0,), arrays), np.ones(ITEMS, bool))
    expected = stats.binomtest(int(right.sum()), ITEMS).proportion_ci(method="wilson")
    assert (shown.mean.low / 100, shown.mean.high / 100) == pytest.approx((expected.low, expected.high), abs=5e-4)
