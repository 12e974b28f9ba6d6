"""The audit of a data set: each check finds what was planted for it, and is silent without."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.data.audit import audit_data
from fairtrial.data.corpus import Document
from fairtrial.data.probes import probe_labels
from fairtrial.errors import BadInput
from fairtrial.recipe import built_in_recipe, with_settings
from fairtrial.typed import unstructure

Write = Callable[..., Path]
COLOURS = ("red", "blue", "green", "grey", "brown", "white", "black", "pink")


def row(number: int, label: str, **more: str) -> dict[str, str]:
    """A sentence that shares no three words with any other."""
    words = [f"{COLOURS[number * 7 // 8**place % 8]}{number}" for place in range(9)]
    return {"text": " ".join(words), "label": label, **more}


@pytest.fixture
def jsonl(tmp_path: Path) -> Write:
    """A data set of 200 clean training rows and 100 test rows, and what is added to them."""

    def write(train: list[dict[str, Any]] = [], test: list[dict[str, Any]] = []) -> Path:  # noqa: B006
        rows = {
            "train": [row(number, "ab"[number // 10 % 2]) for number in range(200)] + train,
            "test": [row(number, "ab"[number // 10 % 2]) for number in range(500, 600)] + test,
        }
        for name, each in rows.items():
            (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, each)) + "\n")
        return tmp_path

    return write


def audit(source: Path, task: str = "classify", *settings: str, name: str = "default") -> dict[str, Any]:
    recipe = with_settings(built_in_recipe(name, task), [f"data.source={source}", *settings])
    return unstructure(audit_data(recipe))


def verdicts(found: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(each["id"], each["where"]): each["verdict"] for each in found["findings"]}


def finding(found: dict[str, Any], id: str, where: str) -> dict[str, Any]:
    return next(each for each in found["findings"] if (each["id"], each["where"]) == (id, where))


def test_clean_data_pass(jsonl: Write) -> None:
    found = audit(jsonl(), "classify", "tokens.min_count=1")
    failed = {key: verdict for key, verdict in verdicts(found).items() if verdict not in ("PASS", "REPORT")}
    assert set(failed) <= {("P3", "train"), ("D6u", "test")}  # made-up words are all unknown to one another
    assert found["sets"]["test"]["clean"] == 100
    assert found["sets"]["test"]["status"] == [0] * 100


def test_one_duplicate_in_a_hundred_is_amber_and_more_are_red(jsonl: Write) -> None:
    def copied(count: int) -> dict[str, Any]:
        extra = [{**row(number, "a"), "text": row(number, "a")["text"].upper() + "!"} for number in range(count)]
        return audit(jsonl(test=extra))

    one, two = copied(1), copied(2)
    assert verdicts(one)["D1", "test"] == "AMBER"
    assert verdicts(two)["D1", "test"] == "RED"
    assert (one["level"], two["level"]) == ("amber", "red")
    assert two["sets"]["test"]["exact"] == 2
    assert two["sets"]["test"]["identical"] == 0
    assert two["sets"]["test"]["status"][-3:] == [0, 1, 1]
    example = finding(two, "D1", "test")["examples"][0]
    assert "test.jsonl:101" in example
    assert "train.jsonl:1" in example


def test_near_duplicates_are_distinguished(jsonl: Write) -> None:
    near = {**row(3, "b"), "text": row(3, "b")["text"] + " more"}
    found = audit(jsonl(test=[near]))
    assert verdicts(found)["D1", "test"] == "PASS"
    assert verdicts(found)["D1n", "test"] == "AMBER"
    assert found["sets"]["test"]["status"][-1] == 2


def test_the_audit_says_which_rule_made_an_item_contaminated(jsonl: Write) -> None:
    near = {**row(3, "b"), "text": row(3, "b")["text"] + " more"}
    made = {**row(1, "a"), "text": " ".join(row(number, "a")["text"] for number in (1, 2, 3))}
    long = {**row(1, "a"), "text": row(1, "a")["text"] + " and" + " so on" * 3 + "".join(f" x{n}" for n in range(40))}
    found = audit(jsonl(test=[row(5, "a"), near, made, long]))
    assert found["sets"]["test"]["status"][-4:] == [1, 2, 2, 0]
    ((number, share),) = found["sets"]["test"]["contained"].items()
    assert int(number) == len(found["sets"]["test"]["status"]) - 2
    assert 0.5 <= share < 1
    shown = {id: finding(found, id, "test") for id in ("D1", "D1n", "D1c")}
    assert {id: each["shown"].split()[0] for id, each in shown.items()} == {"D1": "1", "D1n": "1", "D1c": "1"}
    assert f"({share:.0%} of the item)" in shown["D1c"]["examples"][0]


def test_duplicates_of_carved_validation_count_as_known(jsonl: Write) -> None:
    """Validation is carved from train by the seed; the status of a test item must not depend on that."""
    source = jsonl(test=[row(number, "ab"[number % 2]) for number in range(50)])
    recipe = with_settings(built_in_recipe("default", "classify"), [f"data.source={source}"])
    found = [unstructure(audit_data(recipe, seed)) for seed in (0, 1)]
    assert found[0]["sets"] == found[1]["sets"]
    assert found[0]["sets"]["test"]["exact"] == 50


def test_a_text_under_two_labels_is_found_inside_and_across(jsonl: Write) -> None:
    found = verdicts(audit(jsonl(train=[row(4, "b")], test=[row(15, "a")])))
    assert found["D3", "train"] == "AMBER"
    assert found["D3", "test"] == "PASS"
    assert found["D3", "test and train"] == "AMBER"
    assert verdicts(audit(jsonl()))["D3", "train"] == "PASS"


def test_a_word_that_reveals_the_class_is_named(jsonl: Write) -> None:
    marked = [{**row(1000 + n, "a"), "text": row(1000 + n, "a")["text"] + " zanzibar"} for n in range(25)]
    found = finding(audit(jsonl(train=marked)), "D5", "train")
    assert found["verdict"] == "AMBER"
    assert "'zanzibar': 25 of its 25 texts are 'a'" in found["examples"]
    mixed = [*marked, *({**row(2000 + n, "b"), "text": row(2000 + n, "b")["text"] + " zanzibar"} for n in range(2))]
    assert finding(audit(jsonl(train=mixed)), "D5", "train")["verdict"] == "PASS"


def test_in_one_sided_data_every_word_is_of_one_class_and_none_is_blamed(jsonl: Write) -> None:
    common = [{"text": f"day{number % 100} number{number}", "label": "a"} for number in range(5000)]
    assert finding(audit(jsonl(train=common)), "D5", "train")["verdict"] == "PASS"


def test_groups_on_both_sides(jsonl: Write) -> None:
    train = [row(3000 + n, "a", group="speech 1") for n in range(4)]
    together = audit(jsonl(train, [row(4000 + n, "b", group="speech 1") for n in range(2)]))
    apart = audit(jsonl(train, [row(4000 + n, "b", group="speech 2") for n in range(2)]))
    assert finding(together, "D7", "test")["verdict"] == "RED"
    assert "speech 1" in finding(together, "D7", "test")["examples"][0]
    assert finding(apart, "D7", "test")["verdict"] == "PASS"
    assert finding(audit(jsonl()), "D7", "test")["verdict"] == "REPORT"


def test_a_table_may_name_groups(tmp_path: Path) -> None:
    for name, group in (("train", "one"), ("test", "one")):
        rows = [f"{row(n, 'a')['text']}{name}\t{'ab'[n % 2]}\t{group}{n % 30}" for n in range(60)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel\tgroup", *rows]) + "\n")
    assert finding(audit(tmp_path), "D7", "test")["verdict"] == "RED"


def test_a_vocabulary_that_saw_test_text_or_labels_is_red(course_folder: Path) -> None:
    test = (course_folder / "test_LM_obama.txt").read_text().splitlines()
    with (course_folder / "train_CLS.tsv").open("a") as file:
        file.write(f"0\t{test[0]}\n")
    with (course_folder / "test_LM_obama.txt").open("a") as file:
        file.write("Quokkas.\n")  # an unknown word, for which nothing was trained
    wrong, right = audit(course_folder, "lm", name="course"), audit(course_folder, "lm")
    assert finding(wrong, "D4", "obama")["verdict"] == "RED"
    assert finding(wrong, "D4l", "train")["value"] == pytest.approx(91 / 171)
    assert finding(wrong, "P3", "train")["verdict"] == "RED"
    assert {finding(right, id, where)["verdict"] for id, where in (("D4", "obama"), ("D4l", "train"))} == {"PASS"}


def test_an_unknown_token_that_no_test_needs_is_told_without_alarm(tmp_path: Path) -> None:
    novel = tmp_path / "novel.txt"
    novel.write_text(
        "\n\n".join(f"The {('red', 'blue')[n % 2]} ship {('sank', 'left')[n // 7 % 2]}." for n in range(400))
    )
    found = finding(audit(novel, "lm"), "P3", "train")
    assert found["verdict"] == "REPORT"
    assert "no test word is unknown" in found["meaning"]


def test_the_course_data_in_figures(shared_data: Path) -> None:
    classify = audit(shared_data / "speeches", name="course")
    sets = classify["sets"]["test"]
    assert (sets["items"], sets["identical"], sets["exact"], sets["near"], sets["clean"]) == (750, 551, 551, 1, 198)
    assert classify["level"] == "red"
    assert finding(classify, "D3", "train")["shown"].startswith("4 of 2,092")
    lm = audit(shared_data / "speeches", "lm", name="course")
    assert {name: found["exact"] for name, found in lm["sets"].items()} == {"obama": 2, "wbush": 0, "hbush": 3}


def test_the_vocabulary_of_a_pretrained_encoder_is_not_audited(jsonl: Write) -> None:
    ours = {"D4", "D4l", "P3", "D6u"}
    found = {each["id"] for each in audit(jsonl(), "classify", "encoder.source=minilm")["findings"]}
    assert not ours & found
    assert ours <= {each["id"] for each in audit(jsonl())["findings"]}


def test_the_vocabulary_of_a_record_is_not_audited_but_duplicates_are(jsonl: Write) -> None:
    found = {each["id"] for each in audit(jsonl(), "classify", "tokens.fit=some/record", "shape.length=8")["findings"]}
    assert "D1" in found
    assert not {"D4", "P3"} & found


def test_the_courses_vocabulary_needs_the_courses_folder(jsonl: Write) -> None:
    with pytest.raises(BadInput, match="needs the course's folder"):
        audit(jsonl(), "classify", name="course")


def labelled(text: Callable[[int, str], str], ordered: bool = False) -> list[dict[str, Any]]:
    """300 rows whose texts or order may depend on their label."""
    rng = random.Random(1)
    labels = [rng.choice("ab") for _ in range(300)]
    labels = sorted(labels) if ordered else labels
    plain = [" ".join(rng.choices(COLOURS, k=rng.randint(5, 15))) for _ in labels]
    rows = enumerate(zip(labels, plain, strict=True))
    return [{"text": text(number, label) % words, "label": label} for number, (label, words) in rows]


LEAKS: dict[str, Callable[[int, str], str]] = {
    "length in words": lambda number, label: "%s" + " and more words" * (label == "b"),
    "share of punctuation": lambda number, label: "%s" + ("!" if label == "b" else "") + " end",
    "share of capitals": lambda number, label: "%s SO" if label == "a" else "%s so",
    "last sign": lambda number, label: "%s." if label == "a" else "%s",
    "first number": lambda number, label: f"{number + 1000 * (label == 'a')}: %s",
    "last digit of the first number": lambda number, label: f"id {2 * number + (label == 'a')} %s",
    "first sign of the first code": lambda number, label: f"{'pq'[label == 'a']}{number} %s",
}


@pytest.mark.parametrize("feature", LEAKS)
def test_a_label_that_leaks_through_a_surface_feature_is_found(feature: str) -> None:
    probes = {probe.feature: probe for probe in probe_labels([Document(**row) for row in labelled(LEAKS[feature])])}
    assert probes[feature].leaks


def test_rows_sorted_by_their_label_are_amber_and_texts_that_say_nothing_pass(tmp_path: Path) -> None:
    for ordered, verdict in ((True, "AMBER"), (False, "PASS")):
        rows = labelled(lambda number, label: "%s", ordered)
        for name, part in (("train", rows), ("test", rows[:20])):
            (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)) + "\n")
        found = finding(audit(tmp_path), "D5p", "train")
        assert found["verdict"] == verdict
        assert any("place in the file" in example for example in found["examples"]) == ordered


def test_probes_of_meaningless_labels_alarm_in_few_of_many_data_sets() -> None:
    rng = random.Random(0)
    rows = labelled(lambda number, label: "%s")
    alarms = 0
    for _ in range(20):
        documents = [Document(row["text"], rng.choice("abc"), location=f"x:{n}") for n, row in enumerate(rows)]
        alarms += any(probe.leaks for probe in probe_labels(documents))
    assert alarms <= 1


@pytest.mark.parametrize("twin", ["caf\u00e9", "cafe\u0301", "Caf\u00e9", "caf\u00e9\u200b"])
def test_labels_that_look_alike_get_a_notice(twin: str, jsonl: Write) -> None:
    notes = audit(jsonl(train=[row(700 + n, ("caf\u00e9", twin)[n % 2]) for n in range(8)]))["notes"]
    assert any("differ only in spelling" in note for note in notes) == (twin != "caf\u00e9")


def sourced(column: str, train: Callable[[int], object], test: Callable[[int], object]) -> dict[str, Any]:
    """Rows with a further column."""
    parts = {"train": (0, 200, train), "test": (500, 600, test)}
    return {
        name: [row(n, "ab"[n // 10 % 2], **{column: str(value(n))}) for n in range(begin, end)]
        for name, (begin, end, value) in parts.items()
    }


@pytest.mark.parametrize("column", ["review_id", "doc_id", "url", "speaker", "authorName", "xq"])
def test_a_column_of_sources_on_both_sides_is_found(column: str, tmp_path: Path) -> None:
    def verdict(train: Callable[[int], object], test: Callable[[int], object]) -> str:
        for name, rows in sourced(column, train, test).items():
            (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        found = verdicts(audit(tmp_path))
        return found.get(("D7c", "test"), "not asked")

    assert verdict(lambda n: n // 5, lambda n: n // 5) == "PASS"  # split by the column
    assert verdict(lambda n: n // 5, lambda n: n // 5 if n < 585 else (n - 585) // 5) == "AMBER"  # 15 of 100 break it
    by_name = "PASS" if column == "xq" else "AMBER"
    assert verdict(lambda n: n % 40, lambda n: n % 40) == by_name  # nothing but the name tells sources from kinds
    assert verdict(lambda n: n % 4, lambda n: n % 4) == "not asked"
    assert verdict(lambda n: n, lambda n: n) == "not asked"
    assert verdict(lambda n: f"d{n // 5}-{n}", lambda n: f"d{(n - 500) // 5}-{n}") == by_name
