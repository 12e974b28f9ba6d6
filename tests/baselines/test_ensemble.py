"""Ensembles: weights by brute force, one model alone is the record or the baseline, no test set takes part."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairtrial.baselines.ensemble import (
    AVERAGED,
    Ensemble,
    fit_ensemble,
    linear_weights,
    log_linear_weights,
    mix_log_linear,
    open_ensemble,
    unseen,
)
from fairtrial.baselines.run import baseline_outcomes
from fairtrial.data.corpus import Document
from fairtrial.prepare import read_extra
from fairtrial.record import Record
from fairtrial.training.tasks import LanguageTask
from fairtrial.trial import load, run_trial
from sealed import reseal

COUNTING = {"lm": "Kneser-Ney", "classify": "naive Bayes"}
BASELINE = {"lm": "Kneser-Ney trigram", "classify": "naive Bayes"}
WHAT = {"lm": "nll", "classify": "log_p"}


def opened_ensemble(record: Record) -> Ensemble:
    return open_ensemble(record, (), {}, lambda what: None)


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_one_weight_alone_is_the_record_or_the_baseline(task: str, finished_records: dict[str, Path]) -> None:
    record = Record.open(finished_records[task])
    ensemble = opened_ensemble(record)
    names, kept = list(ensemble.models), record.outcomes()
    counted = baseline_outcomes(record.recipe, record.trial["seed"])[BASELINE[task]]
    for name in ("validation", *record.trial["test_sets"]):
        place, what = f"{name}/{WHAT[task]}", WHAT[task]
        only = np.eye(len(names))
        by_record = ensemble.outcomes(name, only[names.index("transformer")])
        by_counting = ensemble.outcomes(name, only[names.index(COUNTING[task])])
        assert by_record[what] == pytest.approx(kept[place], rel=1e-5)
        assert by_counting[what] == pytest.approx(counted[place], rel=1e-9)
        assert np.abs(by_record[what] - by_counting[what]).max() > 1e-3  # a control: they are two models
        for other in set(by_record) - {what}:
            assert np.array_equal(by_record[other], kept[f"{name}/{other}"])


def test_next_token_probabilities_of_a_language_ensemble_sum_to_one(finished_records: dict[str, Path]) -> None:
    """Every entry of the vocabulary in turn as the last token of one context."""
    record = Record.open(finished_records["lm"])
    ensemble, run = opened_ensemble(record), load(record)
    assert isinstance(run.task, LanguageTask)
    tokens = run.task.sets["validation"]
    size, context = run.tokenizer.size, tokens.sequences[0][:6]
    weights = np.full(len(ensemble.models), 1 / len(ensemble.models))
    found = []
    for entry in range(size):
        asked = type(tokens)((np.append(context, entry),), (np.zeros(7, int),), 1, np.ones(1), tokens.unknown)
        shares = [ensemble.by_network(asked), *(model(asked.sequences) for model in ensemble.counting.values())]
        found.append(sum(weight * share[-1] for weight, share in zip(weights, shares, strict=True)))
    assert sum(found) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_the_ensemble_is_no_worse_than_its_models_where_it_was_chosen(
    task: str, finished_records: dict[str, Path]
) -> None:
    opened = [Record.open(finished_records[task])]
    ensemble = opened_ensemble(opened[0])
    weights = np.array(list(fit_ensemble(opened, tests=False)["weights"].values()))

    def loss(taken: np.ndarray) -> float:
        sign = 1 if task == "lm" else -1
        return sign * float(ensemble.outcomes("validation", taken)[WHAT[task]].sum())

    alone = [
        loss(only) for name, only in zip(ensemble.models, np.eye(len(weights)), strict=True) if "unseen" not in name
    ]
    assert loss(weights) <= min(alone) + 1e-4
    assert max(alone) > min(alone) + 0.1


def test_weights_are_chosen_on_validation_alone(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    """Other test files, the same weights; other validation, other weights."""
    run_trial(tiny_recipe("lm", "data.validation=0.2"), 0, tmp_path / "chosen")
    run_trial(tiny_recipe("lm", "data.validation=0"), 0, tmp_path / "whole")
    chosen, whole = Record.open(tmp_path / "chosen"), Record.open(tmp_path / "whole")
    unread = fit_ensemble([chosen], tests=False)
    assert unread["tests"] == {}
    read = fit_ensemble([whole], [chosen])
    assert read["weights"] == unread["weights"]
    assert set(read["tests"]) == set(whole.trial["test_sets"])
    assert set(read["tests"]["obama"]) == {"ensemble", "transformer", "Kneser-Ney"}
    run_trial(tiny_recipe("lm", "data.validation=0.2"), 5, tmp_path / "other")
    assert fit_ensemble([Record.open(tmp_path / "other")], tests=False)["weights"] != unread["weights"]


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_transformers_of_several_seeds_as_one_model(
    task: str, tiny_recipe: Callable[..., Any], tmp_path: Path, finished_records: dict[str, Path]
) -> None:
    """The mean of probabilities; by Jensen no document is less likely than by the mean of logarithms."""
    recipe = tiny_recipe(task, "data.validation=0", "tokens.fit=course")
    for seed in (0, 1):
        run_trial(recipe, seed, tmp_path / f"seed{seed}")
    records = [Record.open(tmp_path / f"seed{seed}") for seed in (0, 1)]
    ensembles = [opened_ensemble(record) for record in records]
    name = str(records[0].trial["test_sets"][0])
    found = ensembles[0].averaged(name, ensembles)
    assert found is not None
    kept = np.stack([record.outcomes()[f"{name}/{WHAT[task]}"] for record in records])
    if task == "lm":
        mean = sum(each.predictions(name)[0] for each in ensembles) / 2
        assert found["nll"].sum() == pytest.approx(-np.log(mean).sum())
        assert (found["nll"] <= kept.mean(0) + 1e-6).all()
    else:
        assert found["log_p"] == pytest.approx(np.log(np.exp(kept).mean(0)), rel=1e-4)
    chosen_on = [Record.open(finished_records[task])]
    told = [AVERAGED in fit_ensemble(some, chosen_on)["tests"][name] for some in (records, records[:1])]
    assert told == [True, False]


def test_the_command_prints_weights_and_scores(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any]
) -> None:
    said = fairtrial("ensemble", finished_records["classify"])
    assert said.code == 0
    assert "logistic regression" in said.out
    assert "new seed" in said.out
    as_json = json.loads(fairtrial("ensemble", finished_records["classify"], "--json").out)
    assert as_json["metric"] == "accuracy"
    assert len(as_json["weights"]) == 3


def test_copies_of_scored_text_are_dropped_from_extra_text(
    finished_records: dict[str, Path], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    scored = load(Record.open(finished_records["lm"])).splits.tests["obama"]
    copied = next(each.text for each in scored if len(each.text.split()) >= 8)
    extra = tmp_path / "extra.txt"
    extra.write_text(
        "\n\n".join(["We will build new schools in this country.", copied, "God bless you all tonight."] * 8)
    )
    found = json.loads(fairtrial("ensemble", finished_records["lm"], "--more", extra, "--json").out)
    assert found["more"][0]["dropped"] > 0
    assert f"Kneser-Ney with {extra}" in found["weights"]


def test_records_that_do_not_fit_together_are_refused(
    finished_records: dict[str, Path], tiny_recipe: Callable[..., Any], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    run_trial(tiny_recipe("lm", "data.validation=0"), 3, tmp_path / "whole")
    shutil.copytree(finished_records["lm"], tmp_path / "elsewhere")
    elsewhere = Record.open(tmp_path / "elsewhere")
    reseal(elsewhere.folder, trial={"data": {"other.txt": "0" * 64}, "seed": 99})
    folders = {**finished_records, "whole": tmp_path / "whole", "elsewhere": tmp_path / "elsewhere"}
    for words, message in {
        "whole": "no validation set",
        "lm lm": "same seed",
        "lm whole": "different recipes",
        "lm elsewhere": "different data",
        "whole --chosen-on classify": "another task",
        "unfinished": "not finished",
    }.items():
        said = fairtrial("ensemble", *(folders.get(word, word) for word in words.split()))
        assert (said.code, message in said.err) == (2, True), said.err


def test_sentences_inside_paragraphs_of_extra_text_are_found(finished_records: dict[str, Path]) -> None:
    scored = "We shall not rest until every child has a school."
    source = finished_records["lm"].parent / "extra.txt"
    source.write_text(f"It was late. {scored} And so they went home.\n\nNobody else came.\n")
    run = load(Record.open(finished_records["lm"]))
    splits = replace(run.splits, validation=(Document(scored),))
    found = read_extra(str(source), run.recipe, run.tokenizer, splits)
    assert found.left_out == 1
    assert [document.text for document in found.documents] == [
        "It was late.",
        "And so they went home.",
        "Nobody else came.",
    ]


def test_linear_weights_are_those_of_a_grid() -> None:
    rng = np.random.default_rng(0)
    said = rng.uniform(0.01, 1, (2, 400)) * np.array([[1.0], [0.7]])
    grid = np.linspace(0, 1, 2001)
    losses = [-np.log(share * said[0] + (1 - share) * said[1]).mean() for share in grid]
    weights = linear_weights(said)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] == pytest.approx(grid[int(np.argmin(losses))], abs=1e-3)
    assert 0.05 < weights[0] < 0.95  # a control: neither model alone is best here
    assert -np.log(weights @ said).mean() <= min(losses) + 1e-9


def test_a_model_that_is_always_better_gets_everything() -> None:
    worse = np.random.default_rng(1).uniform(0.1, 0.5, 50)
    assert linear_weights(np.stack((worse, worse * 1.5)))[1] == pytest.approx(1, abs=1e-3)


def classes(items: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Two models of three classes that know different things, the second overconfident."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, items)
    logits = rng.normal(size=(2, items, 3)) + 1.0 * np.eye(3)[labels]
    logits[1] *= 8
    return logits - np.log(np.exp(logits).sum(2, keepdims=True)), labels


def test_log_linear_weights_are_those_of_a_grid() -> None:
    log_p, labels = classes()
    items = np.arange(len(labels))
    weights = log_linear_weights(log_p, labels)

    def loss(*tried: float) -> float:
        return -float(mix_log_linear(log_p, np.array(tried))[items, labels].mean())

    best = min(loss(one, other) for one in np.linspace(0, 2, 81) for other in np.linspace(0, 0.5, 81))
    assert loss(*weights) <= best + 1e-6
    assert loss(*weights) < min(loss(1, 0), loss(0, 1)) - 0.01  # a control: mixing helps here
    assert weights[1] < weights[0]  # the overconfident one is tempered


def test_log_linear_weights_are_a_logistic_regression_on_two_classes() -> None:
    """Of two classes, a log-linear ensemble is a logistic regression without intercept on differences of logs."""
    log_p, labels = classes()
    kept = labels < 2
    pair, right = log_p[:, kept, :2], labels[kept]
    differences = (pair[:, :, 1] - pair[:, :, 0]).T
    oracle = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10, max_iter=1000).fit(differences, right)
    assert log_linear_weights(pair, right) == pytest.approx(oracle.coef_[0], rel=1e-3)


def test_log_linear_ensembles_sum_to_one_and_a_single_weight_gives_a_model_back() -> None:
    log_p, _ = classes(20)
    mixed = mix_log_linear(log_p, np.array([0.4, 0.3]))
    assert np.exp(mixed).sum(1) == pytest.approx(np.ones(20))
    assert mix_log_linear(log_p, np.array([0.0, 1.0])) == pytest.approx(log_p[1])
    assert np.abs(mixed - log_p[1]).max() > 0.1


def test_unseen_words_get_half_and_the_unknown_word_the_other_half() -> None:
    train = [np.array([2, 3, 3]), np.array([5, 2])]
    shares = unseen(train, 8, pad=0, unknown=1)  # never seen: 1, 4, 6, 7
    assert shares == pytest.approx([0, 0.5, 0, 0, 1 / 6, 0, 1 / 6, 1 / 6])
    assert unseen([np.array([1, 2, 3])], 5, pad=0, unknown=1) == pytest.approx([0, 0, 0, 0, 1])  # unknown is trained
    assert unseen([np.array([2, 3, 4])], 5, pad=0, unknown=1) == pytest.approx([0, 1, 0, 0, 0])
    assert unseen([np.array([1, 2, 3, 4])], 5, pad=0, unknown=1) == pytest.approx(np.full(5, 0.2))  # nothing is missing
