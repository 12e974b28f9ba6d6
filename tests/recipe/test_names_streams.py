"""Registry are given once and misspellings are met kindly; every use of chance keeps its rng for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.errors import BadInput
from fairtrial.registry import Registry, did_you_mean
from fairtrial.rng import generator_for, seed_for
from sampling import cases


def test_a_thing_is_found_under_its_name() -> None:
    tools: Registry[str] = Registry("tool")
    assert tools.add("saw")("a saw") == "a saw"
    tools.add("awl")("an awl")
    assert tools.find("saw") == "a saw"
    assert tools.list() == ["awl", "saw"]


def test_a_name_is_given_once() -> None:
    tools: Registry[str] = Registry("tool")
    tools.add("saw")("a saw")
    with pytest.raises(BadInput, match="two tools are called 'saw'"):
        tools.add("saw")("another")
    assert tools.find("saw") == "a saw"


@cases(
    ("typed", "told"),
    [
        ("rpoe", "; did you mean 'rope'?"),
        ("rope2", "; did you mean 'rope'?"),
        ("alib", "; did you mean 'alibi'?"),
        ("xyz", "; there is: alibi, rope"),
    ],
)
def test_the_near_name_is_offered_or_all_are_listed(typed: str, told: str) -> None:
    assert did_you_mean(typed, ["alibi", "rope"]) == told


def test_where_nothing_is_known_nothing_is_offered() -> None:
    assert did_you_mean("rope", []) == ""
    with pytest.raises(BadInput, match=r"no tool is called 'saw'$"):
        Registry("tool").find("saw")


@cases(
    ("use", "seed"),
    [
        ((0, "split", "test"), 6_450_541_360_171_379_112),
        ((7, "init", "blocks.0.attention.qkv.weight"), 6_377_781_099_594_137_637),
        ((3, "order", 2), 5_395_776_396_005_811_069),
    ],
)
def test_seeds_stay_what_they_were(use: tuple[int | str, ...], seed: int) -> None:
    """If this fails, every record of the past can no longer be repeated."""
    assert seed_for(*use) == seed  # type: ignore[arg-type]


def test_dice_stay_what_they_were() -> None:
    assert generator_for(1, "order").integers(0, 1000, 4).tolist() == [225, 614, 77, 853]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["split", "order", "init"])), unique=True, max_size=60)
)
def test_no_two_uses_share_their_dice(uses: list[tuple[int, str]]) -> None:
    seeds = {seed_for(seed, use) for seed, use in uses}
    assert len(seeds) == len(uses)
    assert all(0 <= seed < 2**63 for seed in seeds)
