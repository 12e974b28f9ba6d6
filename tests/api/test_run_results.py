"""One score per run: which column is what, which runs count, and the t-tests that scipy has, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fairtrial as ft
from fairtrial.statistics.outcomes import direction_of
from sampling import cases

Call = Callable[..., Any]


def made_up(ours: int = 6, theirs: int = 5, digits: int = 6) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    losses = {"old": rng.normal(3.28, 0.002, theirs), "new": rng.normal(3.27, 0.003, ours)}
    return [
        {"variant": name, "seed": seed, "val_loss": round(float(loss), digits)}
        for name, own in losses.items()
        for seed, loss in enumerate(own)
    ]


def scores(rows: list[dict[str, Any]], variant: str) -> list[float]:
    return [row["val_loss"] for row in rows if row["variant"] == variant]


@pytest.mark.parametrize(("ours", "theirs"), [(5, 5), (6, 9), (30, 7)])
def test_two_groups_of_runs_get_scipys_t_tests(ours: int, theirs: int) -> None:
    rng = np.random.default_rng(ours)
    a, b = rng.normal(0, 2, ours), rng.normal(1, 1, theirs)
    welch = stats.ttest_ind(a, b, equal_var=False)
    found = ft.compare_runs(a, b, metric="loss")
    assert found.p == pytest.approx(welch.pvalue, rel=1e-12)
    low, high = welch.confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high), rel=1e-9)
    assert (found.runs, found.question, found.paired) == ((ours, theirs), "new_runs_same_items", False)
    same = ft.compare_runs(a[:5], b[:5], "abcde", "abcde", metric="loss")
    assert same.p == pytest.approx(stats.ttest_rel(a[:5], b[:5]).pvalue, rel=1e-12)
    assert same.p != pytest.approx(ft.compare_runs(a[:5], b[:5], metric="loss").p, rel=1e-3)


def test_a_table_of_runs_gives_the_same_in_any_order_and_under_any_names_of_unmatched_seeds() -> None:
    rows = made_up()
    rng = np.random.default_rng(1)
    (row,) = ft.verdict(rows).comparisons
    assert row.verdict == "better"
    found = ft.compare_runs(scores(rows, "new"), scores(rows, "old"), range(6), range(5), metric="val_loss")
    assert (found.p, found.difference) == (row.p, row.difference)
    apart = [each | {"seed": each["seed"] + 10 * (each["variant"] == "new")} for each in rows]
    (welch,) = ft.verdict(apart).comparisons
    expected = stats.ttest_ind(scores(rows, "new"), scores(rows, "old"), equal_var=False).pvalue
    assert welch.p == pytest.approx(expected, rel=1e-12)
    for _ in range(5):
        order = [rows[at] for at in rng.permutation(len(rows))]
        assert ft.verdict(order, baseline="old").comparisons[0].p == pytest.approx(row.p, rel=1e-12)
        names = dict(zip(range(16), rng.permutation(1000).tolist(), strict=False))
        renamed = [each | {"seed": names[each["seed"]]} for each in apart]
        (again,) = ft.verdict(renamed).comparisons
        assert (again.p, again.difference.low) == pytest.approx((welch.p, welch.difference.low), rel=1e-12)


def test_the_first_sentence_states_the_smaller_question_and_few_runs_get_no_verdict() -> None:
    found = ft.verdict(made_up())
    assert " on this test set: val_loss " in found.text[0]
    assert "lower is better" in found.text[0] or " lower (95% interval" in found.text[0]
    assert "6 and 5 runs)" in found.text[0]
    assert found.text[1].startswith("One score per run cannot show whether a difference also holds on other test items")
    for few in (1, 4):
        (row,) = ft.verdict(made_up(few)).comparisons
        assert (row.verdict, row.reasons[0].code, row.runs) == ("undecided", "too_few_seeds", (few, 5))
        assert row.difference.estimate is not None


def test_equal_rounded_scores_are_not_certain_and_not_copies() -> None:
    rows = [{"variant": name, "seed": s, "loss": "3.28"} for name in ("a", "b") for s in range(5)]
    (row,) = ft.verdict(rows).comparisons
    assert (row.verdict, row.runs, row.difference.estimate) == ("undecided", (5, 5), 0.0)
    assert row.p == 1.0
    assert row.difference.high > 0.003, "the last digit hides as much"


def test_copies_count_once_and_a_seed_with_two_scores_is_refused() -> None:
    rows = made_up(digits=12)
    copied = [*rows, rows[0] | {"seed": 77}, rows[7]]
    found = ft.verdict(copied)
    assert found.comparisons[0].runs == (6, 5)
    assert "Runs that repeat another one exactly count once: old (the data:1 and the data:12)." in found.text
    assert "1 row repeated a run to the last digit and count once." in found.text
    with pytest.raises(ft.BadInput, match=r"old, seed 0 has two different scores: 3\.\d+ \(the data:1\) and 3\.5 "):
        ft.verdict([*rows, rows[0] | {"val_loss": 3.5}])
    noise = np.random.default_rng(5).normal(0, 0.01, (12, 12)).round(3)
    curves = [
        row | {"step": step, "val_loss": f"{noise[at, step] + 15 - step:.3f}"}
        for at, row in enumerate(made_up())
        for step in range(12)
    ]
    again = [row | {"seed": 99} for row in curves if (row["variant"], row["seed"]) == ("new", 2)]
    assert ft.verdict([*curves, *again]).comparisons[0].runs == (6, 5), "an equal curve is a copy, whatever its digits"


def test_the_last_step_of_each_run_counts_and_this_is_said(tmp_path: Path) -> None:
    finals = made_up()
    (expected,) = ft.verdict(finals).comparisons
    curves = [
        row | {"step": step, "val_loss": row["val_loss"] + (20 - step) / 10} for row in finals for step in (0, 10, 20)
    ]
    found = ft.verdict([curves[at] for at in np.random.default_rng(0).permutation(len(curves))], baseline="old")
    assert found.comparisons[0].p == pytest.approx(expected.p, rel=1e-9)
    assert "Each run counts by its last step (20)." in found.text
    for row in finals:
        path = tmp_path / "runs" / row["variant"] / f"seed-{row['seed']}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"step,val_loss\n0,11\n20,{row['val_loss']}\n10,5\n")
    (row,) = ft.verdict(str(tmp_path / "runs/{variant}/seed-{seed}.csv"), baseline="old").comparisons
    assert (row.p, row.runs) == (expected.p, (6, 5))


WANDB = """"Name","State","Created","Runtime","optimizer","lr","seed","train_loss","val_loss"
"sun-1","finished","2026-01-01","120","adamw","0.001","0","3.1","3.281"
"sun-2","finished","2026-01-02","121","adamw","0.001","1","3.2","3.283"
"sun-4","crashed","2026-01-03","12","adamw","0.001","3","3.9",""
"sun-5","finished","2026-01-04","120","muon","0.001","0","3.1","3.271"
"sun-6","finished","2026-01-05","121","muon","0.001","1","3.1","3.273"
"""
TRACKIO = "run_name,metric,step,value\n" + "".join(
    f"{name}-seed{seed},val_loss,{step},{loss if step else 9}\n"
    for name, losses in (("adamw", (3.281, 3.283)), ("muon", (3.271, 3.273)))
    for seed, loss in enumerate(losses)
    for step in (100, 0)
)
MLFLOW = "run_id,status,start_time,metrics.val_loss,metrics.train_loss,params.lr,params.seed,params.opt\n" + "".join(
    f"id{loss},FINISHED,{n},{loss},3.1,0.1,{n % 2},{name}\n"
    for n, (name, loss) in enumerate((("adamw", 3.281), ("adamw", 3.283), ("muon", 3.271), ("muon", 3.273)))
)
MLFLOW_PAGE = "Start Time;Run ID;Name;params.opt;params.seed;metrics.val_loss\n" + "".join(
    f"2026;id{n};run;{name};{n % 2};{str(loss).replace('.', ',')}\n"
    for n, (name, loss) in enumerate((("adamw", 3.281), ("adamw", 3.283), ("muon", 3.271), ("muon", 3.273)))
)
PLAIN = "config,run,final_loss\nadamw,0,3.281\nadamw,1,3.283\nmuon,2,3.271\nmuon,3,3.273\n"


@cases(
    ("text", "said"),
    [
        (WANDB, "Rows of runs that did not finish are left out: 1 (crashed)."),
        (WANDB, "variant from 'optimizer', value from 'val_loss'; not used: State, Created, Runtime, lr, train_loss."),
        (TRACKIO, "variant from 'run_name'"),
        (TRACKIO, "Each run counts by its last step (100)."),
        (MLFLOW, "variant from 'params.opt', value from 'metrics.val_loss'"),
        (MLFLOW_PAGE, "run from 'Run ID', variant from 'params.opt', value from 'metrics.val_loss'"),
        (PLAIN, "variant from 'config', value from 'final_loss'"),
        (PLAIN, "No column tells the seeds"),
    ],
)
def test_exports_of_trackers_are_read_and_what_was_assumed_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(text)
    found = ft.verdict(tmp_path / "runs.csv")
    (row,) = found.comparisons
    assert (row.variant, row.baseline, row.runs) == ("muon", "adamw", (2, 2))
    assert row.difference.estimate == pytest.approx(-0.01)
    assert row.metric.name in ("val_loss", "final_loss")
    assert said in " ".join(found.text)


@cases(
    ("text", "words"),
    [
        ("model,seed,val_loss,test_loss\na,0,1,2\nb,0,1,2\n", r"columns val_loss, test_loss could all be the score"),
        ("opt,lr,seed,loss\na,1,0,1.5\nb,2,0,1.5\na,1,1,1.4\nb,2,1,1.4\n", "opt, lr could all tell the variants apart"),
        ("variant,seed,sparkle\na,0,1.5\nb,0,2.5\n", "whether a higher or a lower sparkle is better"),
        ("variant,seed,loss\na,0,1.5\nb,0,\n", r"runs\.csv:3: a run of b has no value"),
        ("variant,seed,loss\na,0,1.5\na,0,1.6\nb,0,1.6\n", "a, seed 0 has two different scores"),
        ("variant,seed,loss\na,0,1.5\na,,1.6\nb,0,1.6\n", "has no seed"),
    ],
)
def test_what_is_not_clear_is_asked(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(ft.BadInput, match=words):
        ft.verdict(tmp_path / "runs.csv")


def test_the_direction_comes_from_the_name_or_from_the_user(tmp_path: Path, fairtrial: Call) -> None:
    lower = "val_loss nll testPPL word_perplexity error_rate err WER cer val-bpb bits_per_byte rmse mae brier_score"
    higher = "acc val_accuracy macro-F1 BLEU rougeL score auroc correct exact_match@5 episode_reward bertscore"
    assert [name for name in lower.split() if direction_of(name) is not False] == []
    assert [name for name in higher.split() if direction_of(name) is not True] == []
    assert [direction_of(name) for name in ("sparkle", "final", "value")] == [None] * 3
    rows = [{"variant": row["variant"], "seed": row["seed"], "sparkle": row["val_loss"]} for row in made_up()]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for flag, verdict in (("--lower-is-better", "better"), ("--higher-is-better", "worse")):
        said = json.loads(fairtrial("verdict", path, flag, "--json").out)
        assert said["tasks"]["sparkle"]["comparisons"][0]["verdict"] == verdict
    assert ft.verdict(rows, lower_is_better=True).comparisons[0].verdict == "better"
    with pytest.raises(ft.BadInput, match="cannot be both"):
        ft.verdict(rows, lower_is_better=True, higher_is_better=True)
    arrays = np.random.default_rng(0).normal(3, 0.1, (7, 50))
    assert ft.compare(arrays[:5] - 1, arrays, metric="val_loss").verdict == "better", "5 and 7 seeds"
    assert ft.compare(arrays[:5] - 1, arrays, metric="bleu").verdict == "worse"


def test_a_threshold_is_a_one_sided_t_test_of_each_variant(fairtrial: Call, tmp_path: Path) -> None:
    rows = [row for row in made_up() if row["variant"] == "new"]
    path = tmp_path / "runs.csv"
    path.write_text("variant,val_loss\n" + "".join(f"new,{row['val_loss']}\n" for row in rows))
    own = np.array(scores(rows, "new"))
    limit = float(own.mean() + 2 * own.std(ddof=1) / np.sqrt(6))
    expected = stats.ttest_1samp(own, limit, alternative="less").pvalue
    (row,) = ft.verdict(path, threshold=limit, alpha=0.01).comparisons
    assert row.p == pytest.approx(expected, rel=1e-9)
    assert (row.baseline, row.runs, row.verdict) == (f"the threshold {limit:g}", (6, 0), "undecided")
    assert 0.01 < expected < 0.1
    assert ft.verdict(path, threshold=limit, alpha=0.1).comparisons[0].verdict == "better"
    said = fairtrial("verdict", path, "--threshold", 3.28, "--alpha", 0.01)
    assert "new is better than the threshold 3.28" in " ".join(said.out.split())
    above = ft.verdict(path, threshold=3.26).comparisons[0]
    assert (above.verdict, above.p > 0.9) == ("undecided", True)
    both = ft.verdict(made_up(2, 1), threshold=3.3).comparisons
    assert [(each.variant, each.runs, each.reasons == ()) for each in both] == [
        ("old", (1, 0), False),
        ("new", (2, 0), True),
    ]
    upper = [{"variant": "a", "seed": s, "accuracy": 0.9 + s / 1000} for s in range(4)]
    (row,) = ft.verdict(upper, threshold=0.89).comparisons
    assert (row.verdict, row.metric.unit, round(row.difference.estimate, 2)) == ("better", "points", 1.15)


@cases(
    ("call", "words"),
    [
        (lambda: ft.compare_runs([1, np.nan], [1, 2], metric="loss"), "finite numbers"),
        (lambda: ft.compare_runs([[1, 2]], [1, 2], metric="loss"), "a flat list"),
        (lambda: ft.compare_runs([1, 2], [1, 2], [0], [0, 1], metric="loss"), "as many seeds"),
        (lambda: ft.compare_runs([1, 2], [1, 2], sed=3), "unexpected keyword argument 'sed'"),
        (lambda: ft.compare_runs([1, 2], [1, 2], margin=np.nan), "margin must be a number or None, got nan"),
        (lambda: ft.power(seeds=5.5), "seeds must be a whole number, got 5.5"),
        (lambda: ft.power(detect="2"), "detect must be a number or None, got '2'"),
        (lambda: ft.study(["rope"], seeds=True), "seeds must be a whole number or None, got True"),
        (lambda: ft.verdict(), "missing a required argument: 'results'"),
        (lambda: ft.verdict({}), "the results are empty"),
        (lambda: ft.verdict(7), "int cannot be read"),
        (lambda: ft.verdict({"a": [[1, 0], [1]], "b": [[1, 0], [0, 1]]}), "a, seed 1, lacks 1 item"),
        (lambda: ft.verdict({"a": ["x", "y"], "b": [1, 2]}), "must hold numbers"),
        (lambda: ft.verdict(made_up(), alpha=2), "alpha must be between"),
        (lambda: ft.verdict(made_up(), margin="much"), "margin must be a number or None"),
        (lambda: ft.verdict({"a": [[1, 0]] * 5, "b": [[0, 1]] * 5}, threshold=0.5), "one score per run"),
    ],
)
def test_mistakes_in_python_are_bad_input(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ft.BadInput, match=words):
        call()


@pytest.mark.parametrize("cell", ["x", "nan", "inf"])
def test_a_broken_score_is_named_with_its_line(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"variant,seed,val_loss\na,0,3.2\na,1,{cell}\nb,0,3.1\nb,1,3.0\n")
    with pytest.raises(ft.BadInput, match=r"runs\.csv:3: .*finite number"):
        ft.verdict(path)


def test_a_test_of_a_model_fails_with_the_verdict_as_its_message() -> None:
    old, same, worse = [3.2, 3.21, 3.2, 3.19, 3.2], [3.2, 3.22, 3.19, 3.19, 3.2], [3.3, 3.31, 3.3, 3.29, 3.3]
    assert ft.assert_not_worse(old, same, metric="val_loss").verdict == "undecided"
    assert ft.assert_not_worse(old, same, metric="val_loss", margin=0.5).verdict == "equivalent"
    with pytest.raises(AssertionError, match="new is worse than baseline: val_loss"):
        ft.assert_not_worse(old, worse, metric="val_loss")
    with pytest.raises(AssertionError, match="undecided"):
        ft.assert_not_worse(old, same, metric="val_loss", margin=0.005)
    with pytest.raises(AssertionError, match="worse"):
        ft.assert_not_worse([[1, 1, 0, 1] * 40] * 5, [[0, 1, 0, 0] * 40] * 5)


def test_the_command_fails_on_the_verdicts_that_are_named(tmp_path: Path, fairtrial: Call) -> None:
    scores = {
        "old": [3.2, 3.21, 3.2, 3.19, 3.2],
        "new": [3.1, 3.11, 3.1, 3.09, 3.1],
        "same": [3.2, 3.22, 3.19, 3.19, 3.2],
    }
    rows = [f"{name},{seed},{loss}" for name, losses in scores.items() for seed, loss in enumerate(losses)]
    (tmp_path / "runs.csv").write_text("\n".join(["variant,seed,val_loss", *rows]))
    codes = [fairtrial("verdict", tmp_path / "runs.csv", "--fail-on", kind).code for kind in ("worse", "undecided")]
    assert codes == [0, 10]
    assert fairtrial("verdict", tmp_path / "runs.csv", "--fail-on", "worst").code == 2


def test_variants_of_one_verdict_are_told_together_and_clear_ones_first() -> None:
    chance = np.random.default_rng(0)
    table = {f"v{n}": chance.normal(3.3 if n < 7 else 3.1, 0.01, (5, 1)).ravel().tolist() for n in range(8)}
    runs = [
        {"variant": name, "seed": s, "loss": loss} for name, losses in table.items() for s, loss in enumerate(losses)
    ]
    told = ft.verdict(runs).text
    assert told[0].startswith("v7 is better than v0 on this test set: loss")
    assert told[1].startswith(
        "v1, v2, v3, v4, v5 and v6 are undecided versus v0 on this test set (loss, lower is better)"
    )
