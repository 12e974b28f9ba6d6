"""Results from elsewhere are judged as a study's own are, and what they cannot answer is said."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairtrial as ft
from fairtrial.results.study import StudyFiles, from_json
from fairtrial.results.values import Question, VerdictKind

Call = Callable[..., Any]
HEADS = ("seed", "item", "variant", "value")
BETTER_CHECKPOINT = (VerdictKind.BETTER, Question.CHECKPOINTS)


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    rows = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def made_up(seeds: int = 5, items: int = 60, gain: float = 0.15, **more: Any) -> list[dict[str, Any]]:
    """Right and wrong answers of two variants, of which `new` is better."""
    rng = np.random.default_rng(3)
    level = rng.random(items)
    found = []
    for variant, better in (("old", 0.0), ("new", gain)):
        for seed in range(seeds):
            right = rng.random(items) < np.clip(level * 0.8 + 0.1 + better, 0, 1)
            found += [
                {"seed": seed, "item": f"q{n}", "variant": variant, "value": int(one), **more}
                for n, one in enumerate(right)
            ]
    return found


def exported(study: ft.Study) -> Iterable[dict[str, Any]]:
    """What a stranger would have stored of the same trials."""
    for variants in StudyFiles.open(study.folder).records.values():
        for variant, records in variants.items():
            for record in records:
                arrays, labels = record.outcomes(), record.trial.labels
                for item in range(len(arrays["test/guess"])):
                    guess, label = (labels[arrays[f"test/{name}"][item]] for name in ("guess", "label"))
                    yield {"seed": record.trial.seed, "item": item, "variant": variant, "test": "test",
                           "label": label, "prediction": guess, "value": int(guess == label)}  # fmt: skip


def test_a_studys_outcomes_exported_give_its_own_numbers(
    library: dict[str, Any], tmp_path: Path, fairtrial: Call
) -> None:
    study = library["finished"]
    path = write(tmp_path / "results.csv", exported(study))
    own, found = study.verdict.tasks["classify"], ft.verdict(path, baseline="none").tasks["accuracy"]
    assert found.comparisons == own.comparisons, "to the last digit"
    assert found.scores == own.scores
    assert [row for row in own.exploratory if row.metric.name == "macro-F1"]
    assert {row.metric.name: row.difference.estimate for row in found.exploratory}["macro-F1"] == {
        row.metric.name: row.difference.estimate for row in own.exploratory
    }["macro-F1"]
    assert ft.verdict(path, baseline="none").text[0] in own.comparisons[0].sentence
    said = fairtrial("verdict", path, "--baseline", "none", "--json")
    assert from_json(json.loads(said.out)).tasks["accuracy"].comparisons == own.comparisons
    said = fairtrial("verdict", path, "--baseline", "none")
    assert "compared with none on" in said.out


def test_a_language_models_documents_weigh_as_in_a_study() -> None:
    """Nats per token with tokens as weights; groups of documents; Holm over both test sets."""
    from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
    from fairtrial.statistics.verdict import judge_task

    rng = np.random.default_rng(5)
    tokens, groups = rng.integers(1, 40, 60), np.repeat(np.arange(12), 5)
    rows, variants = [], dict[str, dict[str, SetOutcomes]]()
    for variant, level in (("a", 5.0), ("b", 4.9), ("c", 5.02)):
        for test in ("near", "far"):
            nll = tokens * (level + rng.normal(0, 0.2, (5, 60)))
            arrays = {"nll": nll, "tokens": np.tile(tokens, (5, 1)), "bytes": np.tile(4 * tokens, (5, 1))}
            arrays["unknown"] = np.zeros((5, 60), int)
            variants.setdefault(variant, {})[test] = SetOutcomes(tuple(range(5)), arrays)
            rows += [
                {"seed": s, "item": n, "variant": variant, "value": nll[s, n] / tokens[n], "weight": int(tokens[n]),
                 "metric": "perplexity", "test": test, "group": int(groups[n])}
                for s in range(5) for n in range(60)
            ]  # fmt: skip
    clusters = {"near": groups, "far": groups}
    own = judge_task(
        TaskOutcomes(task="lm", baseline="a", least_difference=0.01, variants=variants, clusters=clusters)
    ).comparisons
    found = ft.verdict(rows)
    assert [row.family for row in found.comparisons] == [2] * 2
    for one, other in zip(found.comparisons, own, strict=True):
        assert (one.variant, one.test_set, one.verdict) == (other.variant, other.test_set, other.verdict)
        for name in ("p", "p_adjusted", "detectable", "groups"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9), name
        for name in ("estimate", "low", "high"):
            assert getattr(one.shown, name) == pytest.approx(getattr(other.shown, name), rel=1e-9), name
        assert one.sentence == other.sentence
    more = [row | ({"weight": row["weight"] + 1} if row["variant"] == "b" else {}) for row in rows]
    (refused, *_) = ft.verdict(more).comparisons
    assert refused.verdict == "not_comparable"
    assert "different numbers of tokens" in refused.sentence


def test_the_first_of_several_metrics_is_judged_and_the_others_are_exploratory(tmp_path: Path) -> None:
    rows = [row | {"metric": name} for name in ("acc", "loss") for row in made_up()]
    rows = [row | ({"value": 2.5 - row["value"]} if row["metric"] == "loss" else {}) for row in rows]
    both, one, other = ft.verdict(rows), ft.verdict(rows, metric="acc"), ft.verdict(rows, metric=["loss", "acc"])
    assert both.comparisons == one.comparisons
    assert [row.metric.name for row in other.comparisons] == ["loss"]
    assert [row.verdict for row in (*both.comparisons, *other.comparisons)] == ["better"] * 2
    (explored,) = both.tasks["loss"].exploratory
    assert (both.tasks["loss"].comparisons, explored.verdict) == ((), "undecided")
    assert explored.q == explored.p == other.comparisons[0].p
    assert explored.metric.higher_is_better is False
    assert "lower is better" in both.to_markdown()
    assert "Judged by accuracy; other metrics are exploratory." in " ".join(both.text)
    with pytest.raises(ft.BadInput, match="no row has the metric 'acd'"):
        ft.verdict(rows, metric="acd")


def test_without_training_seeds_only_the_checkpoints_are_judged(fairtrial: Call, tmp_path: Path) -> None:
    rows = made_up(seeds=1, items=400)
    without = [{key: row[key] for key in HEADS[1:]} for row in rows]
    path = write(tmp_path / "one.csv", without)
    found = ft.verdict(path)
    (row,) = found.comparisons
    assert (row.verdict, row.question) == BETTER_CHECKPOINT
    values = np.array([[r["value"] for r in rows if r["variant"] == name] for name in ("new", "old")], float)
    gains = 100 * (values[0] - values[1])
    assert row.difference.estimate == pytest.approx(gains.mean())
    error = gains.std(ddof=1) / math.sqrt(400)
    assert (row.difference.high - row.difference.low) / 2 == pytest.approx(1.966 * error, rel=5e-3), "over items alone"
    assert "this checkpoint of new is better than that of old" in found.text[0]
    assert found.text[1].startswith("No training seeds were given, so the verdict is about these checkpoints")
    assert ft.verdict(rows).comparisons[0].question == "these_checkpoints", "one seed is no seed"
    again = [row | {"seed": seed} for seed in range(5) for row in rows]
    copies = ft.verdict(again)
    assert copies.comparisons[0].question == "these_checkpoints", "the same network again is no new training"
    assert any("They are not training seeds and count as one." in line for line in copies.text)
    said = fairtrial("verdict", path, "--out", tmp_path / "one.html")
    page = (tmp_path / "one.html").read_text()
    assert said.code == 0
    assert "better, these checkpoints" in page
    assert "Intervals are over test items alone" in page
    assert str(path) in page


def test_items_must_be_the_same_and_missing_ones_are_named(tmp_path: Path) -> None:
    rows = made_up()
    lost = [row for row in rows if (row["variant"], row["seed"], row["item"]) != ("new", 3, "q17")]
    with pytest.raises(ft.BadInput, match=r"new, seed 3, lacks 1 item of test that others have: q17"):
        ft.verdict(lost)
    with pytest.raises(ft.BadInput, match=r"item 'q0' of old, seed 0, has two scores"):
        ft.verdict([*rows, rows[0]])
    labelled = [row | {"label": "x" if row["variant"] == "old" else "y"} for row in rows]
    with pytest.raises(ft.BadInput, match="is not the same item everywhere: label 'x'"):
        ft.verdict(labelled)
    told = [row | {"label": "x", "prediction": "x"} for row in rows]
    with pytest.raises(ft.BadInput, match="value, label and prediction disagree"):
        ft.verdict(told)
    with pytest.raises(ft.BadInput, match="has no seed"):
        ft.verdict([*rows[1:], rows[0] | {"seed": None}])
    with pytest.raises(ft.BadInput, match="one variant only"):
        ft.verdict(rows[:60])


def test_tables_of_every_kind_and_columns_by_other_names(tmp_path: Path, fairtrial: Call) -> None:
    rows = made_up(items=40)
    expected = ft.verdict(rows).comparisons
    for row in rows:
        row["solved"], row["network"] = row.pop("value") == 1, row.pop("variant")
    columns = {"value": "solved", "variant": "network"}
    csv_file = write(tmp_path / "r.csv", rows)
    jsonl = tmp_path / "r.jsonl"
    jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pytest.importorskip("pyarrow")
    frame = pytest.importorskip("pandas").DataFrame(rows)
    frame.to_parquet(tmp_path / "r.parquet")
    frame.to_feather(tmp_path / "r.arrow")
    packed, semicolons, listed = tmp_path / "p.csv.gz", tmp_path / "s.csv", tmp_path / "l.json"
    packed.write_bytes(gzip.compress(csv_file.read_bytes()))
    semicolons.write_text(csv_file.read_text().replace(",", ";"))
    listed.write_text(json.dumps(rows))
    for what in (csv_file, jsonl, tmp_path / "r.parquet", tmp_path / "r.arrow", frame, packed, semicolons, listed):
        assert ft.verdict(what, columns=columns).comparisons == expected
    said = fairtrial("verdict", csv_file, "--column", "value=solved", "--column", "variant=network", "--json")
    assert json.loads(said.out)["tasks"]["accuracy"]["comparisons"][0]["p"] == expected[0].p
    said = fairtrial("verdict", csv_file)
    assert said.code == 2
    assert "there is no column variant" in said.err
    assert "--column variant=NAME, in Python columns={'variant': 'NAME'}" in said.err
    with pytest.raises(ft.BadInput, match="no column is called 'solfed'; did you mean 'solved'"):
        ft.verdict(csv_file, columns=columns | {"value": "solfed"})
    how = ("--column", "value=solved", "--column", "variant=network", "--baseline", "new")
    fairtrial("verdict", csv_file.name, "--out", "report.html", *how)
    assert csv_file.name in (tmp_path / "report.html").read_text()


def answers(**told: str) -> Iterable[dict[str, Any]]:
    """As one file of one model and seed holds them, under usual names."""
    for row in made_up(items=40):
        if all(str(row[name]) == value for name, value in told.items()):
            yield {"id": row["item"], "text": "...", "gold": "yes", "pred": "yes" if row["value"] else "no"}


def test_columns_of_usual_names_are_taken_and_told_and_doubt_is_refused(tmp_path: Path) -> None:
    rows = made_up(items=40)
    renamed = [{"run": r["seed"], "id": r["item"], "Model": r["variant"], "correct": r["value"]} for r in rows]
    found = ft.verdict(renamed)
    assert found.comparisons == ft.verdict(rows).comparisons
    assert "Columns: item from 'id', variant from 'Model', seed from 'run', value from 'correct'." in found.text
    assert not any(line.startswith("Columns") for line in ft.verdict(rows).text)
    sure = [
        {"seed": r["seed"], "idx": r["item"], "system": r["variant"], "answer": 1, "pred": r["value"], "score": 0.7}
        for r in rows
    ]
    assert ft.verdict(sure).comparisons[0].p == ft.verdict(rows).comparisons[0].p, "a confidence is not the value"
    with pytest.raises(ft.BadInput, match=r"columns id, idx could all be the item\n.*columns=\{'item': 'id'\}"):
        ft.verdict([row | {"idx": row["id"]} for row in renamed])
    lossy = [{"loss" if name == "correct" else name: value for name, value in row.items()} for row in renamed]
    (row,) = ft.verdict(lossy, lower_is_better=True).comparisons
    assert (row.metric.name, row.metric.higher_is_better, row.verdict) == ("loss", False, "worse")
    assert row.difference.estimate == pytest.approx(found.comparisons[0].difference.estimate / 100)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("{variant}_seed{seed}.csv", "preds/{variant}_seed{seed}.csv"),
        ("{variant}-{seed}.csv", "preds/{variant}-{seed}.csv"),
        ("{variant}/seed-{seed}/answers.csv", "preds/{variant}/seed-{seed}/answers.csv"),
        ("seed{seed}_{variant}.csv", "preds/seed{seed}_{variant}.csv"),
    ],
)
def test_a_pattern_says_whose_each_table_is(name: str, pattern: str, tmp_path: Path, fairtrial: Call) -> None:
    for variant in ("old", "new"):
        for seed in range(5):
            path = tmp_path / "preds" / name.format(variant=f"my-{variant}", seed=seed)
            write(path, answers(variant=variant, seed=str(seed)))
    refused = fairtrial("verdict", "preds")
    assert refused.code == 2
    assert "give a pattern: 'runs/{variant}_seed{seed}.csv'" in " ".join(refused.err.split())
    found = ft.verdict(pattern, baseline="my-old")
    assert found.comparisons[0].difference.estimate == ft.verdict(made_up(items=40)).comparisons[0].difference.estimate
    said = ft.verdict(pattern).text
    assert (
        "The baseline is my-new, the first variant. To choose another: --baseline my-old (in Python baseline='my-old')."
        in said
    )
    assert "Columns: item from 'id', label from 'gold', prediction from 'pred'; not used: text." in said
    assert not any("first variant" in line for line in found.text)


def test_a_folder_of_tables_that_say_everything_is_read(tmp_path: Path) -> None:
    rows = made_up(items=40)
    for variant in ("new", "old"):
        write(tmp_path / "all" / f"{variant}.csv", [row for row in rows if row["variant"] == variant])
    assert ft.verdict(tmp_path / "all", baseline="old").comparisons == ft.verdict(rows).comparisons


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,seed\na,0\nb,0\n", r"results\.csv: there is no column value"),
        ("id,gold,bert_0,bert_1\n1,a,a,b\n", r"a row is one run \(variant, seed, score\), or one test item"),
    ],
)
def test_a_table_of_another_shape_is_told_which_is_wanted(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(ft.BadInput, match=words):
        ft.verdict(tmp_path / "results.csv")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,variant,value\nq,a,\n", r"results\.csv:2: item 'q' has no value"),
        ("item,variant,value\nq,a,good\n", "value must be a finite number, or true and false, got 'good'"),
        ("item,variant,value\nq,a,nan\n", "finite"),
        ("item,variant,value\nq,a\n", r"results\.csv:2: expected 3 columns, found 2"),
        ("item,variant,value\n", "has a header, but no rows"),
        ("item,variant,value,metric\nq,a,3,accuracy\nq,b,1,accuracy\n", "between 0 and 1, got 3"),
        ('item,variant,value\n"q,a,1\n', r"results\.csv:2: invalid CSV"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(ft.BadInput, match=words):
        ft.verdict(tmp_path / "results.csv")


def test_power_plans_from_a_spread_or_a_pilot(tmp_path: Path, fairtrial: Call, library: dict[str, Any]) -> None:
    from fairtrial.results.values import VarianceComponents
    from fairtrial.statistics.power import cautious, reach_of

    said = fairtrial("power", "--detect", 2, "--seeds", 5, "--json")
    assert [row["seeds"] for row in json.loads(said.out)["needs"]] == [5, 10, 20, 40]
    assert fairtrial("power", "--detect", 0).code == 2
    said = fairtrial("power", "--seeds", 5, "--items", 750)
    assert ft.power(seeds=5, items=750).sentence in said.out
    said = fairtrial("power", "--seeds", 12, "--items", 900, "--spread", "0.5,6,30", "--comparisons", 3, "--json")
    assert json.loads(said.out)["low"] == reach_of(VarianceComponents(0.25, 36, 900), 12, 900, 0.05, 3)
    assert fairtrial("power", "--spread", "0.5,6").code == 2
    path = write(tmp_path / "pilot.csv", made_up())
    pilot = ft.verdict(path).comparisons[0]
    shares = cautious(pilot.components, pilot.seeds, pilot.effective_items)
    said = fairtrial("power", "--seeds", 20, "--items", 500, "--pilot", path, "--json")
    assert json.loads(said.out)["high"] == reach_of(shares, 20, 500, 0.05)
    pilot = library["finished"].verdict.comparisons[0]
    own = cautious(pilot.components, pilot.seeds, pilot.effective_items)
    assert ft.power(20, 500, pilot=library["finished"].folder).low == reach_of(own, 20, 500, 0.05)
    with pytest.raises(ft.BadInput, match="no variance over seeds"):
        ft.power(pilot=write(tmp_path / "one.csv", made_up(seeds=1)))
