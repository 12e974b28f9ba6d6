"""The zoo: families from end to end, one with a planted fault, what is kept, and the time limit."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.apps.zoo import labels as labels_module
from fairtrial.apps.zoo.labels import DESIGN, FAULT, OPEN, is_clean, kind_of, labels, summary, verdict
from fairtrial.apps.zoo.page import write_page
from fairtrial.apps.zoo.run import COLUMNS, Row, Species, Zoo, audit_zoo, list_species, path_of
from fairtrial.engines import open_engine
from fairtrial.errors import BadInput, Interrupted
from fairtrial.finding import FAIL, NOT_ASKED, PASS, Finding

Call = Callable[..., Any]
DOCS = Path(__file__).parents[2] / "docs"
transformers = pytest.importorskip("transformers")


def finding(id: str, verdict: str, meaning: str = "") -> Finding:
    return Finding(id, "a check", 1.0, "1e-09", verdict, meaning, task="lm", level="red")


def test_a_few_families_from_end_to_end_and_rows_are_made_once(tmp_path: Path, fairtrial: Call) -> None:
    """In processes of their own, by the command."""
    asked = ("audit", "--zoo", "transformers", "--family", "gpt2", "--family", "MambaForCausalLM", "--out", tmp_path)
    done = fairtrial(*asked, "--page", tmp_path / "zoo.md")
    assert done.code == 1
    assert "GPT2LMHeadModel: PASS" in done.out
    assert "3/3]" in done.out
    assert "`docs/zoo/state_of_pieces.py`" in (tmp_path / "zoo.md").read_text()
    names = {"lm-GPT2LMHeadModel", "classify-GPT2ForSequenceClassification", "lm-MambaForCausalLM"}
    assert {path.stem for path in tmp_path.glob("*.json")} == names
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    again = fairtrial(*asked)
    assert "3/3]" not in again.out
    assert "MambaForCausalLM: FAIL: C1p cached in pieces (fault)" in again.out
    assert "2 pass, 1 have a fault" in again.out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")} == times
    row = json.loads((tmp_path / "lm-GPT2LMHeadModel.json").read_text())
    assert {each["id"] for each in row["findings"]} == {id for ids in COLUMNS.values() for id in ids}


def test_a_planted_fault_is_red_and_what_is_stale_or_damaged_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = transformers.GPT2LMHeadModel
    honestly = kind.forward

    def leaking(self: Any, input_ids: Any, attention_mask: Any = None, past_key_values: Any = None, **more: Any) -> Any:
        output = honestly(self, input_ids, attention_mask=attention_mask, past_key_values=past_key_values, **more)
        output.logits = output.logits + 0.1 * output.logits.mean(1, keepdim=True)  # of all times
        return output

    made: list[str] = []
    here, told = open_engine("here"), {"on_row": lambda row, *rest: made.append(row.species.name)}
    species = next(each for each in list_species() if each.name == "GPT2LMHeadModel")
    honest = audit_zoo(families=["GPT2LMHeadModel"], out=tmp_path, engine=here, **told)
    assert is_clean(honest.rows)
    audit_zoo(families=["GPT2LMHeadModel"], out=tmp_path, engine=here, **told)
    assert made == ["GPT2LMHeadModel"]
    path = path_of(tmp_path, species)
    path.write_text(path.read_text().replace("PASS", "FAIL", 1))
    monkeypatch.setattr(kind, "forward", leaking)
    (row,) = (found := audit_zoo(families=["GPT2LMHeadModel"], out=tmp_path, engine=here, **told)).rows
    assert made == ["GPT2LMHeadModel"] * 2
    assert (row.cell("future"), row.cell("padding right"), row.cell("repeats")) == (FAIL, FAIL, PASS)
    assert not is_clean(found.rows)
    assert "M3 no future: changed words (not looked at)" in verdict(row)
    assert "1 fail and were not looked at" in summary(found)


def test_what_takes_too_long_costs_only_itself_and_a_stopped_zoo_continues(tmp_path: Path) -> None:
    limited = audit_zoo(families=["gpt2"], out=tmp_path, seconds=0.01, jobs=1)
    assert all("took longer than" in row.reason for row in limited.rows)
    assert "2 could not be audited" in summary(limited)
    assert not any(row.lasting for row in limited.rows)
    (found,) = audit_zoo(families=["GPT2LMHeadModel"], out=tmp_path, engine=open_engine("here")).rows
    assert not found.reason  # what took too long is tried again
    with pytest.raises(Interrupted, match="stopped after 0 of 1"):
        audit_zoo(families=["BertForSequenceClassification"], out=tmp_path, stop=lambda: True)


def test_unknown_names_are_refused_with_what_was_meant() -> None:
    with pytest.raises(BadInput, match="there is no zoo of 'transformer'"):
        audit_zoo("transformer")
    with pytest.raises(BadInput, match="no family or class 'gtp2'; did you mean"):
        audit_zoo(families=["gtp2"])


def test_families_are_many_and_every_override_is_of_a_family_that_is_there() -> None:
    import tomllib

    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    species = list_species()
    assert len({name for each in species for name in each.families}) >= 100
    text = (Path(labels_module.__file__).parent / "families.toml").read_text()
    assert set(tomllib.loads(text)) <= set(CONFIG_MAPPING_NAMES.values())


def test_every_label_has_its_reason_and_every_fault_its_script_in_the_page() -> None:
    page, known = (DOCS / "zoo.md").read_text(), {each.name for each in list_species()}
    for label in labels():
        assert label.kind in (FAULT, DESIGN)
        assert label.why
        if transformers.__version__ == labels_module.labelled_version():
            assert set(label.classes) <= known
        if label.kind == FAULT:
            script = (DOCS / "zoo" / f"{label.script}.py").read_text()
            assert script.rstrip() in page
            assert (DOCS / "zoo" / f"{label.script}.txt").read_text().rstrip() in page
            assert "fairtrial" not in script
    assert "**FAIL**" not in page  # nothing is left that nobody looked at


@pytest.mark.skipif(
    transformers.__version__ != labels_module.labelled_version(), reason="the scripts are of another version"
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=[] if path.stem in ("rwkv_batch", "moshi_window") else [pytest.mark.slow])
        for path in sorted((DOCS / "zoo").glob("*.py"))
    ],
)
def test_a_script_prints_what_the_page_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "zoo" / f"{name}.py"))
    printed = capsys.readouterr().out.splitlines()
    wanted = (DOCS / "zoo" / f"{name}.txt").read_text().splitlines()
    assert [line.rsplit(" ", 1)[0] for line in printed] == [line.rsplit(" ", 1)[0] for line in wanted]
    rounding = re.compile(r"\d\.\de-(0[6-9]|1\d)")
    assert rounding.sub("0", printed[-1]) == rounding.sub("0", wanted[-1])


def test_a_page_shows_faults_design_and_what_nobody_looked_at(tmp_path: Path) -> None:
    odd, designed = Species("OddForCausalLM", ("odd",), "lm"), Species("XLNetLMHeadModel", ("xlnet",), "lm")
    rows = (
        Row(odd, (finding("M4", NOT_ASKED), finding("M3", FAIL, "It sees the future."), finding("C1", NOT_ASKED))),
        Row(designed, (finding("M3", FAIL), finding("M6", PASS))),
        Row(Species("BigForCausalLM", ("big",), "lm"), reason="it is\ntoo | large"),
    )
    assert [kind_of(row, row.failed[0]) for row in rows[:2]] == [OPEN, DESIGN]
    text = write_page(Zoo("transformers", "5", tmp_path, rows), tmp_path / "zoo.md").read_text()
    assert "| `OddForCausalLM` | odd | **FAIL** |  |" in text
    assert "| `OddForCausalLM` | M3 a check | It sees the future. |" in text
    assert "| `XLNetLMHeadModel` | xlnet | design | ok |" in text
    assert r"| `BigForCausalLM` | it is too \| large |" in text
