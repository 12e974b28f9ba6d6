"""Tables: the verdict's own numbers in every face, stamped, escaped, and no traceback for a damaged file."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from studies import GAINS, classify_outcomes, lm_outcomes, write_study

from fairtrial.description import Cell, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import decimals_for, few_digits, plain_number, probability, with_interval
from fairtrial.report.page import study_page
from fairtrial.report.render import as_csv, as_latex, as_markdown, as_text
from fairtrial.results.study import StudyFiles, from_json, read_verdict, to_json
from fairtrial.results.values import AuditLevel, AuditSummary, Comparison, Metric, TaskVerdict, Verdict
from fairtrial.results.verdict_tables import (
    FURTHER,
    MAIN,
    comparison_row,
    comparisons,
    reuse,
    scores,
    verdict_tables,
)
from fairtrial.statistics.verdict import judge_study
from fairtrial.stored import write_document

HOSTILE = "a|b <script> & 50% of $x_1 #{~^} \\ [l](u) \x1b[31m\n**"


FORMATS = ("terminal", "markdown", "latex")
ACCURACY = Metric("accuracy", "points", True)


def check_verdict(value: dict[str, Any]) -> Verdict:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.json"
        write_document(path, value)
        return read_verdict(path)


def judged(gains: dict[str, float], seeds: int = 5) -> Verdict:
    tasks = {"classify": classify_outcomes(gains, seeds), "lm": lm_outcomes(gains, seeds)}
    return judge_study("Is rotary better?", tasks)


def lines_of(verdict: Verdict, to: str = "terminal", *, every: bool = True) -> list[str]:
    return verdict.render(to, every=every).splitlines()


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return judged(GAINS)


@pytest.fixture(scope="module")
def raw(verdict: Verdict) -> dict[str, Any]:
    return json.loads(json.dumps(to_json(verdict)))


def test_a_verdict_is_read_as_it_was_written(verdict: Verdict, raw: dict[str, Any]) -> None:
    assert from_json(raw) == verdict


@pytest.mark.parametrize(("groups", "needed"), [(None, "287 items"), (34, "287 groups")])
def test_what_more_is_needed_is_counted_in_what_was_tested(groups: int | None, needed: str) -> None:
    one = Comparison("rope", "learned", "test", "all", ACCURACY, 5, 839, groups=groups, more_items=287)
    task = TaskVerdict("learned", ACCURACY, 1.0, (0, 1), {}, {}, (one,))
    assert comparison_row(task, one, None)[-1].text == needed


def test_the_interval_decides_how_many_digits_are_shown() -> None:
    expected = {
        (85.234, 84.02, 86.41): "85.2 [84.0, 86.4]",
        (85.2345, 85.191, 85.271): "85.23 [85.19, 85.27]",
        (85.2345, 85.222, 85.247): "85.234 [85.222, 85.247]",
        (0.01, -5.3, 4.3): "0.0 [-5.3, 4.3]",
        (-0.004, -0.5, 0.4): "0.0 [-0.5, 0.4]",
        (1234.5, None, None): "1,234.5",
        (None, 1.0, 2.0): "– [1.0, 2.0]",
        (50.0, 50.0, 50.0): "50.0 [50.0, 50.0]",
        (float("nan"), float("-inf"), 2.0): "–",
    }
    assert {values: with_interval(*values) for values in expected} == expected


@given(st.floats(1e-3, 1e6), st.floats(-1e6, 1e6))
def test_the_last_digit_shown_is_worth_no_more_than_half_the_interval(half: float, middle: float) -> None:
    low, high = middle - half, middle + half
    decimals = decimals_for(low, high, least=0)
    assert 10.0**-decimals <= max(1.0, (high - low) / 2 * 1.001)
    told = float(plain_number(middle, decimals).replace(",", ""))
    assert abs(told - middle) <= 0.501 * 10.0**-decimals


def test_sizes_and_probabilities_are_told_shortly() -> None:
    assert [few_digits(value) for value in (576467, 1.24e9, 0.01234, None)] == ["576,467", "1.24G", "0.0123", "–"]
    assert [probability(value) for value in (0, 0.0004, 0.0321, 0.81, None)] == [
        "<0.001",
        "<0.001",
        "0.032",
        "0.81",
        "–",
    ]


SMALL = Table(
    "Parameters",
    ("component", "formula", "count"),
    (
        row(Cell("attention", "failed leak audit"), "4 × (64 × 64), no bias", 1_638_400),
        row("位置 <b>", "", 12),
        row("total", "", 1_638_412),
    ),
    note="A note.",
    text_columns=2,
)


def test_a_table_is_aligned_on_the_terminal() -> None:
    assert as_text(SMALL) == [
        "Parameters",
        "  component                      formula                     count",
        "  ----------------------------------------------------------------",
        "  attention [failed leak audit]  4 × (64 × 64), no bias  1,638,400",
        "  位置 <b>                                                      12",
        "  total                                                  1,638,412",
        "  A note.",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_wraps_cells_and_cuts_nothing_off(verdict: Verdict, width: int) -> None:
    for table in [SMALL, *verdict_tables(verdict, MAIN + FURTHER)]:
        lines = as_text(table, width)
        assert "…" not in "".join(lines)
        assert all(cell_len(line) <= width for line in lines)
        shown = "".join("".join(lines).split())
        assert all(
            letter in shown for cells in table.rows for cell in cells for letter in cell.stamped if letter != " "
        )
    if width == 40:
        words = " ".join(as_text(SMALL, width)).split()
        assert {"attention", "[failed", "audit]", "1,638,400"} <= set(words)  # no word is broken where it need not be


def test_the_other_formats_hold_the_same_cells() -> None:
    assert as_csv(SMALL)[1:] == [
        'attention [failed leak audit],"4 × (64 × 64), no bias",1638400',
        "位置 <b>,,12",
        "total,,1638412",
    ]
    assert as_markdown(SMALL)[4:] == [
        "| attention **(failed leak audit)** | 4 × (64 × 64), no bias | 1,638,400 |",
        "| 位置 \\<b\\> |  | 12 |",
        "| total |  | 1,638,412 |",
        "",
        "A note.",
    ]
    latex = "\n".join(as_latex(SMALL))
    assert r"attention \textbf{(failed leak audit)} & 4 $\times$ (64 $\times$ 64), no bias & 1,638,400 \\" in latex
    assert r"\caption" not in "".join(as_latex(replace(SMALL, title="")))


def test_comparisons_tell_the_verdicts_own_numbers(verdict: Verdict) -> None:
    for task in verdict.tasks.values():
        table = comparisons(task)
        assert table is not None
        column = table.columns.index("difference")
        for cells, each in zip(table.rows, task.comparisons, strict=True):
            assert cells[0].text == each.variant
            assert (each.test_set in table.title) is ("test set" not in table.columns)
            expected = each.shown.estimate
            assert float(cells[column].text.split()[0]) == pytest.approx(expected, abs=0.051)


def test_scores_hold_variants_and_what_needs_no_transformer(verdict: Verdict) -> None:
    table = scores(verdict.tasks["classify"])
    assert table is not None
    means = {cells[0].text: cells[3].text.split()[0] for cells in table.rows}
    clean = verdict.tasks["classify"].scores["rope"]["test"]["clean"].mean.estimate
    assert float(means["rope"]) == pytest.approx(clean, abs=0.051)
    assert "naive bayes (no transformer)" in means


def test_reuse_of_a_test_set_shows_how_much_it_flatters(verdict: Verdict) -> None:
    table = reuse(verdict.tasks["classify"])
    assert table is not None
    assert {cells[-1].text for cells in table.rows} == {"87.6 instead of 84.7"}
    assert reuse(verdict.tasks["lm"]) is None


@pytest.mark.parametrize("form", FORMATS)
def test_a_failed_passport_is_stamped_in_every_row_that_names_it(verdict: Verdict, form: str) -> None:
    named = [line for line in rows_of(lines_of(verdict, form), form) if "fade" in line]
    assert len(named) > 20
    assert all("failed leak audit" in line for line in named)
    others = [line for line in rows_of(lines_of(verdict, form), form) if "fade" not in line]
    assert len(others) > 50
    assert not any("failed leak audit" in line for line in others)


def rows_of(lines: list[str], form: str) -> list[str]:
    start = {"terminal": "  ", "markdown": "| ", "latex": "  "}[form]
    begin = next(at for at, line in enumerate(lines) if "Encoder and classifier:" in line)
    return [line for line in lines[begin:] if line.startswith(start)]


def test_no_stamp_without_a_red_passport() -> None:
    lines = lines_of(judged({"learned": 0.0, "rope": 0.5}))
    assert not any("failed leak audit" in line for line in lines)


def test_an_accepted_failure_is_stamped_as_such(verdict: Verdict) -> None:
    accepted = AuditSummary(AuditLevel.RED, ("M3 no future",), accepted=True)
    table = scores(replace(verdict.tasks["classify"], audits={"fade": accepted}))
    assert table is not None
    assert "fade [failed leak audit, accepted]" in [cells[0].stamped for cells in table.rows]


def test_markdown_keeps_its_cells_whatever_a_variant_is_called() -> None:
    lines = lines_of(judged({"learned": 0.0, HOSTILE: 2.0}), "markdown")
    tables = [line for line in lines if line.startswith("|")]
    assert sum("a\\|b" in line for line in tables) > 5
    widths: list[int] = []
    for line in tables:
        width = len(re.findall(r"(?<!\\)\|", line))
        assert not re.search(r"(?<!\\)<|\]\(|\x1b", line)
        if line.startswith(("| variant", "| test set")):
            widths.append(width)
        assert width == widths[-1]


def test_latex_keeps_its_cells_and_braces_whatever_a_variant_is_called() -> None:
    lines = lines_of(judged({"learned": 0.0, HOSTILE: 2.0}), "latex")
    assert any(r"\textbar{}b" in line for line in lines)
    columns = 0
    for line in lines:
        if line.startswith("%"):
            continue
        bare = re.sub(r"\\[{}&%$#_]", "", line)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert not re.search(r"[#~^\x1b]", bare)
        if found := re.match(r"\\begin\{tabular\}\{([lr]+)\}", line):
            columns = len(found[1])
        if line.endswith(r" \\"):
            assert bare.count("&") == columns - 1
    assert columns


PAPER = r"""\documentclass[twocolumn]{article}
\IfFileExists{booktabs.sty}{\usepackage{booktabs}}{\let\toprule\hline\let\midrule\hline\let\bottomrule\hline}
\begin{document}
%s
\end{document}
"""


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex (Debian: texlive-latex-base)")
def test_latex_tables_can_be_typeset(tmp_path: Path) -> None:
    badly = judged({**GAINS, "x" * 60: 1.0, HOSTILE.replace("\x1b", ""): 3.0})
    (tmp_path / "paper.tex").write_text(PAPER % "\n".join(lines_of(badly, "latex", every=False)))
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_sentence_and_table_give_the_same_number_of_items() -> None:
    for task in judged(GAINS).tasks.values():
        table = comparisons(task)
        assert table is not None
        at = table.columns.index("items")
        for cells, one in zip(table.rows, task.comparisons, strict=True):
            assert f"{cells[at].text} item" in one.sentence


def test_text_commands_no_terminal_and_stays_in_columns() -> None:
    lines = lines_of(judged({"learned": 0.0, HOSTILE: 2.0, "位置編碼": 1.0}))
    assert not any(re.search(r"[\x00-\x1f\x7f]", line) for line in lines)
    assert any("位置編碼" in line for line in lines)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in children:
        yield (*path, key)
        yield from paths_in(each, (*path, key))


def changed_at(value: Any, path: tuple[Any, ...], put: Any) -> Any:
    whole = copy.deepcopy(value)
    place = whole
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = put
    return whole


def draw(verdict: dict[str, Any], folder: Path) -> None:
    lines_of(check_verdict(verdict))
    write_document(folder / "verdict.json", verdict)
    study_page(StudyFiles.open(folder))


def test_what_is_missing_or_of_another_kind_is_refused_and_all_else_is_drawn(tmp_path: Path) -> None:
    rng, raw = random.Random(3), json.loads(json.dumps(to_json(judged({"learned": 0.0, "fade": 12.0}))))
    alike = {tuple("#" if isinstance(key, int) else key for key in path): path for path in paths_in(raw)}
    refused = drawn = 0
    for path in rng.sample(sorted(alike.values(), key=repr), 20):
        for put in (None, "nonsense", [1], {"x": 1}, float("nan")):
            try:
                draw(changed_at(raw, path, put), tmp_path)
                drawn += 1
            except BadInput:
                refused += 1
    assert refused > 40
    assert drawn > 5


def test_a_refusal_names_the_place(raw: dict[str, Any]) -> None:
    wrong = changed_at(raw, ("tasks", "classify", "scores", "rope", "test", "clean", "mean", "low"), "much")
    with pytest.raises(BadInput, match=r"damaged at tasks\.classify\.scores\.rope\.test\.clean\.mean\.low"):
        check_verdict(wrong)
    with pytest.raises(BadInput, match="has version 99"):
        check_verdict(raw | {"version": 99})
    with pytest.raises(BadInput, match="sentences: is missing"):
        check_verdict({})


@pytest.fixture
def study(tmp_path: Path, finished_records: dict[str, Path]) -> Path:
    return write_study(tmp_path / "study", finished_records, seeds=5, gains={"learned": 0.0, "rope": 0.5})


def test_the_command_prints_each_format(study: Path, fairtrial: Callable[..., Any]) -> None:
    text = fairtrial("verdict", study)
    assert text.code == 0
    assert "Encoder and classifier: compared with learned on test, in points" in text.out
    assert "exploratory: each test set by itself" in text.out
    assert "exploratory: other" not in text.out
    assert "exploratory: other" in fairtrial("verdict", study, "--all").out
    assert fairtrial("verdict", study, "--format", "markdown").out.startswith("# Is rotary better?")
    assert r"\begin{tabular}{lllrr" in fairtrial("verdict", study, "--format", "latex").out
    stored = json.loads((study / "verdict.json").read_text())
    assert (
        json.loads(fairtrial("verdict", study, "--json").out) | {name: stored[name] for name in ("checksum", "format")}
        == stored
    )


def test_mistakes_are_told_in_one_sentence(study: Path, tmp_path: Path, fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("verdict", study, "--format", "latx")
    assert (said.code, "did you mean 'latex'" in said.err) == (2, True)
    for command in ("verdict", "report"):
        assert "does not exist" in fairtrial(command, tmp_path / "nowhere").err
        assert "not a study" in fairtrial(command, tmp_path).err
        record = next(study.glob("trials/*/*/*"))
        assert f"fairtrial show {record}" in fairtrial(command, record).err
    (study / "verdict.json").unlink()
    said = fairtrial("verdict", study)
    assert (said.code, f"fairtrial study {study}" in said.err) == (2, True)
    (study / "verdict.json").write_text('{"tasks": [1')
    said = fairtrial("verdict", study)
    assert (said.code, "is damaged" in said.err) == (2, True)
