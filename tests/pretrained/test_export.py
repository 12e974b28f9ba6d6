"""Records given back: `transformers` loads them, and answers alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import write_checkpoint

from fairtrial.errors import BadInput, DiskTrouble
from fairtrial.pretrained.export import export_record
from fairtrial.record import Record
from fairtrial.trial import load, run_trial

CLASSES = {
    "GPT2LMHeadModel": "AutoModelForCausalLM",
    "BertForMaskedLM": "AutoModelForMaskedLM",
    "XLMRobertaXLForMaskedLM": "AutoModelForMaskedLM",
    "BertForSequenceClassification": "AutoModelForSequenceClassification",
    "XLMRobertaXLForSequenceClassification": "AutoModelForSequenceClassification",
    "XLMRobertaXLModel": "AutoModel",
}
FIRST = ('parts=["learned", "pool-first"]', "shape.classifier_activation=tanh", "shape.classifier_hidden=16")
GPT2 = ("parts=learned", "shape.output_bias=false")  # what the default recipe's refusal names
CASES = [
    ("lm", GPT2, "GPT2LMHeadModel"),
    ("lm", (*GPT2, "shape.tied=false", "shape.qkv_bias=true"), "GPT2LMHeadModel"),
    ("lm", (*GPT2, "shape.activation=gelu_tanh"), "GPT2LMHeadModel"),
    ("mlm", (), "XLMRobertaXLForMaskedLM"),
    ("mlm", ("shape.tied=true",), "XLMRobertaXLForMaskedLM"),
    ("mlm", ("shape.norm_place=post", "shape.activation=gelu"), "BertForMaskedLM"),
    ("classify", FIRST, "XLMRobertaXLForSequenceClassification"),
    ("classify", (*FIRST, "shape.norm_place=post"), "BertForSequenceClassification"),
    ("classify", (), "XLMRobertaXLModel"),
]


def trained(recipe: Any, folder: Path) -> Record:
    return run_trial(recipe, 1, folder)


@pytest.mark.parametrize(("task", "settings", "architecture"), CASES)
def test_transformers_loads_an_export_and_answers_alike(
    task: str, settings: tuple[str, ...], architecture: str, tiny_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    import transformers

    record = trained(tiny_recipe(task, *settings, "training.duration=6 steps"), tmp_path / "run")
    done = export_record(record, tmp_path / "given")
    assert (done.architecture, done.whole) == (architecture, architecture != "XLMRobertaXLModel")
    theirs = getattr(transformers, CLASSES[architecture]).from_pretrained(tmp_path / "given").eval()
    assert type(theirs).__name__ == architecture
    run = load(record)
    texts = ["We will build bridges .", "The senate and a steady hand for every child"]
    rows = run.tokenizer.encode(texts)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "given")
    assert fast(texts, add_special_tokens=False)["input_ids"] == rows
    network: Any = run.task.network
    for row in rows:
        ids = torch.tensor([row])
        answer = theirs(input_ids=ids)
        if done.whole:
            torch.testing.assert_close(network(ids).detach(), answer.logits.detach(), rtol=1e-5, atol=1e-5)
            assert float(answer.logits.detach().std()) > 1e-3
        else:
            x, layout = network.body(ids)
            torch.testing.assert_close(
                layout.unpack(x).detach(), answer.last_hidden_state.detach(), rtol=1e-5, atol=1e-5
            )


def test_what_is_none_of_theirs_is_refused(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    cases = [
        ("lm", ("shape.output_bias=true",), "GPT-2 has no bias"),
        (
            "lm",
            ("parts=rope", "shape.output_bias=true"),
            r"these parts: rope\n.*--set parts=learned --set shape.output_bias=false",
        ),
        ("classify", ("shape.norm=rms",), "norm = 'rms'"),
    ]
    for number, (task, settings, message) in enumerate(cases):
        record = trained(tiny_recipe(task, *settings, "training.duration=1 steps"), tmp_path / f"run{number}")
        with pytest.raises(BadInput, match=message):
            export_record(record, tmp_path / "given")
        assert not (tmp_path / "given").exists()


def test_an_export_that_fails_leaves_nothing(
    finished_records: dict[str, Path], tmp_path: Path, broken_disk: Any
) -> None:
    for at in (1, 9):
        broken_disk.fail(at)
        with pytest.raises(DiskTrouble, match="the disk is full"):
            export_record(Record.open(finished_records["classify"]), tmp_path / "given")
        assert not list(tmp_path.iterdir())


def test_a_checkpoint_that_was_fine_tuned_goes_back_where_it_came_from(
    tiny_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    import transformers

    write_checkpoint(tmp_path / "bert", "bert", head=False)
    recipe = tiny_recipe("classify", f"encoder.source={tmp_path / 'bert'}", "training.duration=3 steps")
    record = trained(recipe, tmp_path / "run")
    assert export_record(record, tmp_path / "given").architecture == "BertForSequenceClassification"
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "given").eval()
    run = load(record)
    [row] = run.tokenizer.encode(["The film is good ."])
    ids = torch.tensor([row])
    ours: Any = run.task.network
    torch.testing.assert_close(ours(ids).detach(), theirs(input_ids=ids).logits.detach(), rtol=1e-5, atol=1e-5)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "given")("The film is good .")["input_ids"] == row
