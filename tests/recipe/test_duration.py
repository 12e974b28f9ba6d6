"""A length of training is read, written and counted in whole steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.errors import BadInput
from fairtrial.recipe import Duration, Recipe
from sampling import cases


@cases(
    ("text", "duration"),
    [
        ("15 epochs", Duration(15, "epochs")),
        ("1 epoch", Duration(1, "epochs")),
        ("500 steps", Duration(500, "steps")),
        ("1step", Duration(1, "steps")),
        ("  2.5   epochs ", Duration(2.5, "epochs")),
        ("0 epochs", Duration(0, "epochs")),
        ("3.0 steps", Duration(3, "steps")),
        ("6 epochs, 20 to 90 steps", Duration(6, "epochs", 20, 90)),
    ],
)
def test_lengths_are_read(text: str, duration: Duration) -> None:
    assert Duration.read(text) == duration


@cases(
    "text",
    [
        "",
        "5",
        "epochs",
        "-1 epochs",
        "1e3 steps",
        "inf epochs",
        "5 fortnights",
        "5 minutes, 1 to 9 steps",
        "5 epochs more",
        "5 steps, 1 to 9 steps",
        7,
    ],
)
def test_what_is_no_length_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="is not a duration of training") as refused:
        Duration.read(text)
    assert "15 epochs" in refused.value.hint


def test_there_are_no_parts_of_a_step() -> None:
    with pytest.raises(BadInput, match="must be whole"):
        Duration.read("2.5 steps")


@cases(
    ("text", "seconds"), [("90 seconds", 90), ("1 second", 1), ("0.5 minutes", 30), ("3minutes", 180), ("1 hour", 3600)]
)
def test_a_time_becomes_steps_by_their_speed(text: str, seconds: float) -> None:
    duration = Duration.read(text)
    assert duration.seconds == seconds
    assert Duration.read(str(duration)) == duration
    assert duration.at_pace(0.25) == Duration(4 * seconds, "steps")
    assert duration.at_pace(1e9) == Duration(1, "steps"), "one step is taken at least"
    with pytest.raises(BadInput, match="is a time, but the training speed"):
        duration.steps(10)
    assert Duration(5, "epochs").at_pace(0.25) == Duration(5, "epochs"), "what is no time stays"


def test_only_the_duration_of_training_may_be_a_time() -> None:
    for name in ("training.select_every", "scoring.curve_every"):
        with pytest.raises(BadInput, match=rf"{name} = '2 minutes' is a time"):
            Recipe().with_(**{name: "2 minutes"})
    with pytest.raises(BadInput, match="a time must be positive"):
        Duration.read("0 seconds")


@given(st.integers(0, 10**15) | st.floats(0, 1e15), st.sampled_from(["epochs", "steps"]), st.integers(0, 10**15))
def test_what_is_written_reads_the_same(count: float, unit: str, most: int) -> None:
    duration = Duration(int(count) if unit == "steps" else count, unit)
    assert Duration.read(str(duration)) == duration
    bounded = Duration(count, "epochs", most // 2, most)
    assert Duration.read(str(bounded)) == bounded


@cases(("count", "text"), [(1_000_000, "1000000 steps"), (1_234_567, "1234567 steps"), (20, "20 steps")])
def test_all_digits_are_written(count: int, text: str) -> None:
    assert str(Duration(count, "steps")) == text


@cases(
    ("duration", "steps"),
    [
        (Duration(3, "epochs"), 30),
        (Duration(0.25, "epochs"), 3),
        (Duration(7, "steps"), 7),
        (Duration(0, "epochs"), 0),
        (Duration(3, "epochs", 10, 40), 30),
        (Duration(3, "epochs", 31, 40), 31),
        (Duration(3, "epochs", 10, 29), 29),
    ],
)
def test_epochs_are_counted_in_steps_and_rounded_up(duration: Duration, steps: int) -> None:
    assert duration.steps(steps_per_epoch=10) == steps


def test_a_share_of_an_epoch_is_not_rounded_up_by_a_hair() -> None:
    assert Duration.read("0.28 epochs").steps(25) == 7
    assert Duration.read("0.281 epochs").steps(25) == 8


def test_a_length_beyond_all_bounds_is_refused() -> None:
    for text in ("{} steps", "1 epochs, 1 to {} steps", "1 epochs, {} to 1 steps"):
        with pytest.raises(BadInput, match="too long"):
            Duration.read(text.format("9" * 5000))
    with pytest.raises(BadInput, match="above the most"):
        Duration.read("1 epochs, 9 to 8 steps")
