"""Records given back: `transformers` loads them, and answers alike."""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints import write_checkpoint
from safetensors.torch import load as read_weights
from safetensors.torch import save

from fairtrial.errors import BadInput, DiskTrouble
from fairtrial.model.part import parts as registry
from fairtrial.pretrained.export import decoder_for, export_record
from fairtrial.recipe import PartChoice, Recipe, Shape, built_in_recipe, with_settings
from fairtrial.record import Record
from fairtrial.training.scoring import TokenSet, score_windows
from fairtrial.trial import load, run_trial

transformers = pytest.importorskip("transformers", reason="it is the oracle of what is exported")
TEXTS = ["We will build bridges .", "The senate and a steady hand for every child"]
FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
SHORT = ("training.duration=4 steps", "training.learning_rate=0.01")
FIRST = ('parts=["learned", "pool-first"]', "shape.classifier_activation=tanh", "shape.classifier_hidden=16")
ENCODERS = [
    ("mlm", (), "XLMRobertaXLForMaskedLM"),
    ("mlm", ("shape.tied=true", 'parts=["sinusoidal", "multi-query", "relu-squared"]'), "XLMRobertaXLForMaskedLM"),
    ("mlm", ("shape.norm_place=post", "shape.activation=gelu"), "BertForMaskedLM"),
    ("classify", FIRST, "XLMRobertaXLForSequenceClassification"),
    ("classify", (*FIRST, "shape.norm_place=post"), "BertForSequenceClassification"),
    ("classify", ("parts=none",), "XLMRobertaXLModel"),
]
RMS, TIED, QKV, POST = "shape.norm=rms", "shape.tied=true", "shape.qkv_bias=true", "shape.norm_place=post"
NO_BIAS = '{name = "swiglu", bias = false}'
# parts, other settings, the class that computes it
DECODED = [
    (("learned",), (), "GPT2"),
    (("learned", "multi-query", "relu-squared"), (QKV, "shape.activation=gelu"), "GPT2"),
    (("sinusoidal",), (TIED, "shape.activation=gelu_tanh"), "GPT2"),
    (("none", "grouped-query"), ("shape.activation=gelu",), "GPT2"),
    (("learned", "grouped-query", '{name = "window", size = 3}'), (TIED, "shape.activation=silu"), "GPTNeo"),
    (("learned", "multi-query"), (POST, QKV, "shape.output_bias=true"), "BertGeneration"),
    (("sinusoidal",), (POST, TIED, "shape.output_bias=true"), "BertGeneration"),
    (("none",), (POST,), "BertGeneration"),
    (("rope",), (), "Starcoder2"),
    (("rope",), (TIED, "shape.output_bias=true"), "Starcoder2"),  # as in the default recipe
    (("parallel", "rope"), ("shape.output_bias=true",), "GPTNeoX"),
    (("learned",), (TIED, "shape.output_bias=true"), "GPT2"),
    (("multi-query", '{name = "rope", base = 50.0}', '{name = "window", size = 3}'), (QKV, TIED), "Starcoder2"),
    (("rope", "grouped-query", "parallel"), (QKV, "shape.activation=gelu"), "GPTNeoX"),
    (("parallel", '{name = "rope", base = 50.0}'), (TIED,), "GPTNeoX"),
    (("rope", "swiglu"), (RMS,), "Llama"),
    (("geglu", '{name = "rope", base = 50.0}', "multi-query"), (RMS, TIED, QKV), "Llama"),
    (("rope", NO_BIAS, "grouped-query"), (RMS,), "Llama"),
    (("rope", "swiglu", '{name = "window", size = 3}'), (RMS, QKV), "SmolLM3"),
    (("none", NO_BIAS, "multi-query"), (RMS, TIED), "SmolLM3"),
    (("rope", "grouped-query"), (RMS, "shape.activation=gelu_tanh"), "Arcee"),
    (("rope", "relu-squared"), (RMS, QKV, TIED), "Arcee"),
    (("rope", "qk-norm", "swiglu", "grouped-query"), (RMS, QKV), "HYV3"),
    (("rope", "qk-norm", NO_BIAS, "grouped-query"), (RMS,), "Qwen3"),
    (("qk-norm", NO_BIAS, "rope", '{name = "window", size = 3}'), (RMS, QKV, TIED), "Qwen3"),
    (("rope", NO_BIAS, '{name = "soft-cap", cap = 0.5}', "multi-query"), (RMS, QKV), "VaultGemma"),
    (("rope", '{name = "geglu", bias = false}', "soft-cap", '{name = "window", size = 3}'), (RMS, TIED), "VaultGemma"),
]  # fmt: skip
SIZES = (
    "shape.width=32",
    "shape.heads=4",
    "shape.layers=2",
    "shape.hidden=24",
    "shape.start=scaled",
    "shape.norm_epsilon=0.01",
)


def written(*parts: str) -> str:
    return f"parts=[{', '.join(part if part[0] == '{' else repr(part) for part in parts)}]"


def trained(recipe: Any, folder: Path) -> Record:
    return run_trial(recipe, 1, folder)


@pytest.mark.parametrize(("task", "settings", "architecture"), ENCODERS)
def test_transformers_loads_an_encoder_and_answers_alike(
    task: str, settings: tuple[str, ...], architecture: str, tiny_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    record = trained(tiny_recipe(task, *settings, "training.duration=6 steps"), tmp_path / "run")
    done = export_record(record, tmp_path / "given")
    assert (done.architecture, done.whole) == (architecture, architecture != "XLMRobertaXLModel")
    theirs = getattr(transformers, done.auto_class).from_pretrained(tmp_path / "given").eval()
    assert type(theirs).__name__ == architecture
    run = load(record)
    rows = run.tokenizer.encode(TEXTS)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "given")
    assert fast(TEXTS, add_special_tokens=False)["input_ids"] == rows
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


FIRSTS = {title: number for number, (_, _, title) in reversed(list(enumerate(DECODED)))}  # of each class: always run


@pytest.mark.parametrize(
    ("parts", "settings", "title"),
    [
        pytest.param(*case, marks=() if FIRSTS[case[2]] == number else pytest.mark.second)
        for number, case in enumerate(DECODED)
    ],
)
def test_transformers_loads_a_language_model_and_answers_alike(
    parts: tuple[str, ...],
    settings: tuple[str, ...],
    title: str,
    tiny_recipe: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    """As it was trained, and with every weight moved: the scales of norms are then no longer all near one."""
    recipe = tiny_recipe("lm", *SIZES, "shape.output_bias=false", written(*parts), *settings, *SHORT)
    record = trained(recipe, tmp_path / "run")
    for name in ("trained", "moved"):
        if name == "moved":
            weights = save(moved(read_weights(record.weights())))
            monkeypatch.setattr(Record, "weights", lambda record, weights=weights: weights)
        done = export_record(record, tmp_path / name)
        assert done.architecture.startswith(title)
        assert sorted(path.name for path in done.folder.iterdir()) == FILES
        theirs = transformers.AutoModelForCausalLM.from_pretrained(done.folder).eval()
        assert type(theirs).__name__ == done.architecture
        run = load(record)
        network: Any = run.task.network.eval()
        assert_alike(network, theirs, vocabulary=len(network.body.tokens.weight))
        fast = transformers.AutoTokenizer.from_pretrained(done.folder)
        assert fast(TEXTS, add_special_tokens=False)["input_ids"] == run.tokenizer.encode(TEXTS)


@torch.no_grad()
def assert_alike(network: Any, theirs: Any, vocabulary: int) -> None:
    length = network.length
    lengths = torch.tensor([length, 1, 7])
    ids = torch.randint(vocabulary, (3, length), generator=torch.Generator().manual_seed(1))
    real = torch.arange(length) < lengths[:, None]
    ours, answer = network(ids, lengths), theirs(input_ids=ids, attention_mask=real.long()).logits
    torch.testing.assert_close(ours[real], answer[real], rtol=0, atol=1e-5)
    changed = ids.clone()
    changed[0, 0] = (ids[0, 0] + 1) % vocabulary  # control: logits depend on what is compared
    assert float((network(changed, lengths) - ours)[0].abs().max()) > 1e-3


def moved(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return {name: value + 0.2 * torch.randn(value.shape, generator=generator) for name, value in weights.items()}


def test_the_default_recipe_is_exported_by_a_process_that_has_imported_nothing_else(tmp_path: Path) -> None:
    record = trained(with_settings(built_in_recipe("default", "lm"), ["training.duration=3 steps"]), tmp_path / "run")
    weights = read_weights(record.weights())
    assert float(weights["out.bias"].abs().max()) > 1, "the control: there is a bias that is to be folded"
    command = [sys.executable, "-m", "fairtrial", "export", str(tmp_path / "run"), "--out", str(tmp_path / "given")]
    subprocess.run(command, check=True, capture_output=True)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "given").eval()
    network: Any = load(record).task.network.eval()
    assert_alike(network, theirs, vocabulary=len(network.body.tokens.weight))


def test_a_plain_loop_over_an_export_gives_our_perplexity(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    """Over the windows of our own score, with the loss that `transformers` computes of them."""
    recipe = tiny_recipe("lm", *SIZES, "shape.output_bias=false", 'parts=["rope", "grouped-query"]', *SHORT)
    record = trained(recipe, tmp_path / "run")
    export_record(record, tmp_path / "given")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "given").eval()
    run = load(record)
    length = recipe.shape.length
    sequence = np.array(run.tokenizer.encode([" ".join(TEXTS * 9)])[0][: 3 * length + 1])
    network: Any = run.task.network
    tokens = TokenSet((sequence,), (), 1, np.zeros(0), None)
    ours = score_windows(network, tokens, length=length).metrics.window_perplexity
    windows = torch.tensor(sequence).unfold(0, length + 1, length)
    with torch.no_grad():
        nats = [float(theirs(input_ids=window[None], labels=window[None]).loss) for window in windows]
    assert math.exp(sum(nats) / len(nats)) == pytest.approx(ours, rel=1e-6)


# what cannot be exported -> what the refusal says that is missing, and what to set
REFUSED = [
    (("rope", "swiglu"), (RMS, "shape.output_bias=true"), "Llama, .* no output bias .*\n.*shape.output_bias=false"),
    (("alibi",), (), "Starcoder2, .* no alibi\n.*--set parts='\\[\"rope\"\\]' to"),
    (("alibi", "swiglu"), (RMS,), 'Llama, .* no alibi\n.*\'\\["rope", "swiglu"\\]\''),
    (("rope", "swiglu"), (), "Llama, .* no LayerNorm .*\n.*--set shape.norm=rms to"),
    (("learned",), (RMS,), "GPT-2, .* no RMSNorm .*\n.*--set shape.norm=layer to"),
    (("rope",), (POST,), "no post-norm .*\n.*--set shape.norm_place=pre"),
    (("learned", "window"), (QKV,), "GPT-Neo, .* no query bias .*\n.*--set shape.qkv_bias=false"),
    (("rope", "soft-cap", "swiglu"), (RMS,), 'VaultGemma, .* no feed-forward bias\n.*swiglu", bias = false'),
    (("rope", '{name = "window", size = 4, global_tokens = 1}'), (), 'global_tokens\n.*"window", size = 4}'),
    (("rope", "experts"), (), "no experts\n.*'\\[\"rope\"\\]'"),
]


@pytest.mark.parametrize(("parts", "settings", "message"), REFUSED)
def test_what_no_class_computes_is_refused_with_what_to_set(
    parts: tuple[str, ...], settings: tuple[str, ...], message: str
) -> None:
    recipe = with_settings(Recipe(task="lm"), ["shape.output_bias=false", written(*parts or ("rope",)), *settings])
    with pytest.raises(BadInput, match=message):
        decoder_for(recipe)


def test_every_refusal_names_settings_that_can_be_exported() -> None:
    random = Random(3)
    built_in = [name for name in registry.list() if registry.find(name).__module__.startswith("fairtrial.parts.")]
    refused = 0
    for _ in range(400):
        recipe = Recipe(
            task="lm",
            parts=tuple(PartChoice(name=name) for name in random.sample(built_in, random.randint(0, 3))),
            shape=Shape(
                norm=random.choice(["layer", "rms"]),
                norm_place=random.choice(["pre", "post"]),
                output_bias=random.random() < 0.3,
                qkv_bias=random.random() < 0.5,
            ),
        )
        try:
            decoder_for(recipe)
        except BadInput as error:
            refused += 1
            settings = [word for word in shlex.split(str(error).partition("train with ")[2]) if "=" in word]
            assert settings
            decoder_for(with_settings(recipe, settings))
    assert 200 < refused < 400


def test_an_encoder_that_none_of_theirs_is_is_refused(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    for number, (settings, message) in enumerate(
        (
            (("shape.norm=rms",), "norm = 'rms'\n.*shape.norm=layer"),
            (("parts=rope",), "parts: rope\n.*parts=learned"),
            (('parts=["learned", "pool-cls"]',), "use pool-first"),
        )
    ):
        record = trained(tiny_recipe("classify", *settings, "training.duration=1 steps"), tmp_path / f"run{number}")
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


@pytest.mark.parametrize("steps", [1, 60])
def test_a_full_context_gives_the_same_logits_with_first_and_with_trained_weights(
    steps: int, tiny_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    """By both of their kernels. Each network is as far from its own float64 numbers."""
    parts = written("rope", "qk-norm", "swiglu", "grouped-query")
    shape = (*SIZES[1:3], "shape.width=64", "shape.length=128", "shape.norm=rms", "shape.output_bias=false")
    record = trained(tiny_recipe("lm", parts, *shape, f"training.duration={steps} steps"), tmp_path / "run")
    export_record(record, tmp_path / "given")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "given").eval()
    run = load(record)
    ours: Any = run.task.network
    ids = torch.randint(run.tokenizer.size, (2, 128), generator=torch.Generator().manual_seed(0))
    for kernel in ("sdpa", "eager"):
        theirs.set_attn_implementation(kernel)
        torch.testing.assert_close(ours(ids).detach(), theirs(input_ids=ids).logits.detach(), rtol=0, atol=1e-5)
