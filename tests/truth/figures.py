"""Measures the judge in the simulated worlds and writes the tables of research/statistics.md.

python tests/truth/figures.py                        about forty minutes on one core
python tests/truth/figures.py alarms power           these tables only
python tests/truth/figures.py --log rates.jsonl      keeps each measurement of the families; the same command continues
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from itertools import product
from pathlib import Path

from families import STUDY_WORLDS, Rates, measure
from rates import SEEDS, careless, claims, power_as_stated, power_of_the_need, text_claims, watched
from worlds import GROUP_WORLDS, TEXT_WORLDS, WORLDS

PAGE = Path(__file__).parents[2] / "research" / "statistics.md"
RUNS = 2000
FAMILIES = (2, 6, 12, 30, 100, 210)
STUDIES = ((10, 0.05, 1), (10, 0.05, 3), (10, 0.05, 12), (5, 0.005, 1), (10, 0.015, 1), (20, 0.03, 1))
EFFECTS = (("A", 1), ("A", 2), ("B", 2), ("B", 3), ("C", 3), ("D", 2))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rates(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


def alarms() -> str:
    rows = []
    for name, world in WORLDS.items():
        found = claims(world, RUNS)
        sizes = f"{world.seed:g} / {world.item:g} / {world.rest:g}"
        rows.append([name, sizes, str(world.items), rates([found[seeds][0] for seeds in SEEDS])])
    for name, text in TEXT_WORLDS.items():
        found = text_claims(text, RUNS)
        sizes = f"{text.seed:g} / {text.item:g} / {text.rest:g}"
        rows.append(
            [f"language model, {name}", sizes, str(text.documents), rates([found[each][0] for each in (5, 10)])]
        )
    for name, world in GROUP_WORLDS.items():
        found = text_claims(world, 2 * RUNS)
        sizes = f"{world.seed:g} / {world.item:g}, groups {world.group:g} / {world.rest:g}"
        rows.append([f"groups, {name}", sizes, "34 groups", rates([found[each][0] for each in (5, 10)])])
    return table(["world", "seeds / items / residual", "items", "false alarms at 5 / 10 / 20 seeds"], rows)


def instead() -> str:
    found = {name: careless(world, RUNS) for name, world in WORLDS.items()}
    names = {
        "one seed": "one seed, McNemar's test", "pooled": "all answers pooled as independent",
        "seeds only": "t-test over seed means, items as fixed", "crossed": "**crossed t-test**",
        "first look": "crossed t-test at the first look's alpha of 0.005",
    }  # fmt: skip
    rows = [[told, *(f"{found[world][key]:.3f}" for world in WORLDS)] for key, told in names.items()]
    return table(["false alarms at 5 seeds", *WORLDS], rows)


def power() -> str:
    rows = []
    for name, points in EFFECTS:
        found = claims(WORLDS[name], RUNS, points)
        by_seeds = [found[seeds] for seeds in SEEDS]
        rows.append(
            [name, f"{points} point{'s' if points > 1 else ''}", rates([each[0] for each in by_seeds]),
             rates([each[1] for each in by_seeds])]
        )  # fmt: skip
    return table(["world", "true difference", "found at 5 / 10 / 20 seeds", "intervals that hold the truth"], rows)


def stated() -> str:
    rows = []
    for name in ("A", "B", "D"):
        for seeds, alpha, family in STUDIES:
            size, found = power_as_stated(WORLDS[name], seeds, alpha, family, RUNS // 2)
            rows.append([name, str(seeds), f"{alpha:g}", str(family), f"{size:.1f} points", f"{found:.3f}"])
    return table(["world", "seeds", "alpha of the look", "comparisons", "stated on average", "found"], rows)


def looks() -> str:
    rows = [[name, *(f"{value:.3f}" for value in watched(WORLDS[name], RUNS))] for name in ("A", "B")]
    return table(["world", "three looks at 5%", "three looks, their alphas"], rows)


def families(log: Path | None) -> dict[tuple[int, int, str], Rates]:
    """Seeds, comparisons and world -> rates. Half an hour on one core, unless the log has them."""
    known: dict[tuple[int, int, str], Rates] = {}
    if log is not None and log.exists():
        for line in log.read_text().splitlines():
            seeds, variants, name, *values = json.loads(line)
            known[seeds, variants, name] = Rates(*values)
    for seeds, variants, name in product(SEEDS, FAMILIES, STUDY_WORLDS):
        if (seeds, variants, name) in known:
            continue
        rates = measure(STUDY_WORLDS[name], seeds, variants, max(400, 12_000 // variants))
        known[seeds, variants, name] = rates
        if log is not None:
            with log.open("a") as file:
                file.write(json.dumps([seeds, variants, name, *astuple(rates)]) + "\n")
    return known


def many(known: Mapping[tuple[int, int, str], Rates], before: str, now: str, digits: int) -> str:
    """A table for each number of seeds: worlds down, comparisons across, version 0.2 -> now."""
    tables = []
    for seeds in SEEDS:
        rows = []
        for name in STUDY_WORLDS:
            found = [known[seeds, variants, name] for variants in FAMILIES]
            cells = [f"{getattr(each, before):.{digits}f} → {getattr(each, now):.{digits}f}" for each in found]
            rows.append([name, *cells])
        head = [f"{seeds} seeds; comparisons:", *(str(variants) for variants in FAMILIES)]
        tables.append(table(head, rows))
    return "\n\n".join(tables)


def need() -> str:
    rows = []
    for name, points in (("A", 1.5), ("A", 2), ("B", 3), ("C", 5)):
        seeds, found = power_of_the_need(WORLDS[name], points, RUNS // 2)
        rows.append([name, f"{points:g} points", str(seeds), f"{found:.3f}"])
    return table(["world", "difference", "seeds needed, as stated", "found with them"], rows)


def write(names: Sequence[str], log: Path | None) -> None:
    makers: dict[str, Callable[[], str]] = {
        "alarms": alarms,
        "instead": instead,
        "power": power,
        "looks": looks,
        "need": need,
        "stated": stated,
        "false claims": lambda: many(families(log), "false_before", "false_now", 3),
        "found": lambda: many(families(log), "found_before", "found_now", 2),
    }
    for name in names or makers:
        fresh = makers[name]()
        print(fresh, "\n", flush=True)
        marked = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.S)
        text = PAGE.read_text()
        assert marked.search(text), name
        PAGE.write_text(marked.sub(lambda match, fresh=fresh: match[1] + fresh + match[2], text))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--log", type=Path)
    chosen = parser.parse_args()
    write(chosen.tables, chosen.log)


if __name__ == "__main__":
    main()
