"""The contenders of the speed benchmark: same task, shape, data and optimizer, each as its own users would write it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu

from fairtrial.data.batches import Batches
from fairtrial.environment import keep_freed_memory
from fairtrial.prepare import prepare
from fairtrial.recipe import Recipe, built_in_recipe, with_settings
from fairtrial.training.loop import Loop
from fairtrial.training.scoring import as_tensors

sys.path.append(str(Path(__file__).parents[1] / "tests" / "model"))  # nano_gpt.py: nanoGPT's model, written anew

CLASSES = 3
LARGE = "shape.width=512 shape.hidden=2048 shape.heads=8 shape.layers=8 shape.length=1024 shape.activation=gelu".split()
LARGE += [
    "shape.tied=true",
    "shape.dropout=0.0",
    "training.batch=2",
    "training.optimizer=adamw",
    "training.label_smoothing=0.0",
]


@dataclass(frozen=True)
class Contender:
    name: str
    step: Callable[[int], None]  # one training step on batch number ...
    parameters: int


def course_recipe(task: str) -> Recipe:
    """The course's recipe on the course's data where they are at hand, else on the embedded corpus; or a large one."""
    if task == "large":
        return with_settings(built_in_recipe("default", "lm"), LARGE)
    recipe = built_in_recipe("course", task)
    place = os.environ.get("FAIRTRIAL_DATA")
    if place:
        return replace(recipe, data=replace(recipe.data, source=str(Path(place) / "speeches")))
    return replace(recipe, tokens=replace(recipe.tokens, fit="train"))


def make(task: str, name: str) -> Contender:
    recipe = course_recipe(task)
    if name == "fairtrial":
        keep_freed_memory()  # as every trial does
    ours, batches, vocabulary = make_ours(recipe)
    return ours if name == "fairtrial" else make_theirs(name, recipe, batches, vocabulary)


def make_ours(recipe: Recipe, seed: int = 0) -> tuple[Contender, Batches, int]:
    """Our whole training step as the loop runs it: batch, rng, loss, gradients, optimizer; and its batches."""
    prepared = prepare(recipe, seed)
    loop = Loop(prepared.task, recipe.training, recipe.scoring, seed)
    loop.network.train()
    size = sum(each.numel() for each in loop.network.parameters())
    return (
        Contender("fairtrial", lambda number: void(loop.train_step(number)), size),
        prepared.task.batches,
        prepared.tokenizer.size,
    )


def void(_: object) -> None:
    return None


def make_theirs(name: str, recipe: Recipe, batches: Batches, vocabulary: int) -> Contender:
    build = {
        ("transformers", "classify"): bert,
        ("transformers", "lm"): gpt2,
        ("x-transformers", "classify"): x_encoder,
        ("x-transformers", "lm"): x_decoder,
        ("nanoGPT", "lm"): nano_gpt,
    }[name, recipe.task]
    model, loss = build(recipe, vocabulary)
    model.train()
    kind = torch.optim.AdamW if recipe.training.optimizer == "adamw" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=recipe.training.learning_rate, fused=name == "nanoGPT")  # as nanoGPT does

    def step(number: int) -> None:
        ids, lengths, answers = as_tensors(batches.batch(number), torch.device("cpu"))
        optimizer.zero_grad()
        loss(ids, lengths, answers).backward()
        optimizer.step()

    return Contender(name, step, sum(each.numel() for each in model.parameters()))


Loss = Callable[[Tensor, Tensor | None, Tensor], Tensor]


def real_tokens(ids: Tensor, lengths: Tensor | None) -> Tensor:
    return (
        torch.arange(ids.shape[1]) < lengths[:, None] if lengths is not None else torch.ones_like(ids, dtype=torch.bool)
    )


def bert(recipe: Recipe, vocabulary: int) -> tuple[nn.Module, Loss]:
    from transformers import BertConfig, BertForSequenceClassification

    shape = recipe.shape
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=vocabulary,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=shape.hidden,
            max_position_embeddings=shape.length,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            hidden_act="relu",
            num_labels=CLASSES,
        )
    )
    return model, lambda ids, lengths, answers: cross_entropy(
        model(input_ids=ids, attention_mask=real_tokens(ids, lengths)).logits, answers
    )


def gpt2(recipe: Recipe, vocabulary: int) -> tuple[nn.Module, Loss]:
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = recipe.shape
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary,
            n_positions=shape.length,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            n_inner=shape.hidden,
            activation_function="relu",
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            tie_word_embeddings=False,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    return model, lambda ids, lengths, answers: cross_entropy(
        model(input_ids=ids, use_cache=False).logits.flatten(0, 1), answers.flatten()
    )


def nano_gpt(recipe: Recipe, vocabulary: int) -> tuple[nn.Module, Loss]:
    from nano_gpt import GPT

    shape = recipe.shape
    model = GPT(vocabulary, shape.length, shape.width, shape.layers, shape.heads, dropout=0.0)
    return model, lambda ids, lengths, answers: cross_entropy(model(ids)[0].flatten(0, 1), answers.flatten())


def x_encoder(recipe: Recipe, vocabulary: int) -> tuple[nn.Module, Loss]:
    from x_transformers import Encoder, TransformerWrapper

    shape = recipe.shape
    layers = Encoder(
        dim=shape.width,
        depth=shape.layers,
        heads=shape.heads,
        attn_dim_head=shape.head_dim,
        ff_mult=shape.hidden / shape.width,
        attn_flash=True,
    )
    body = TransformerWrapper(num_tokens=vocabulary, max_seq_len=shape.length, attn_layers=layers)
    head = nn.ModuleList((nn.Linear(shape.width, shape.classifier_hidden), nn.Linear(shape.classifier_hidden, CLASSES)))

    def loss(ids: Tensor, lengths: Tensor | None, answers: Tensor) -> Tensor:
        real = real_tokens(ids, lengths)
        x = body(ids, mask=real, return_embeddings=True) * real[..., None]
        return cross_entropy(head[1](relu(head[0](x.sum(1) / real.sum(1, keepdim=True)))), answers)

    return nn.ModuleList((body, head)), loss


def x_decoder(recipe: Recipe, vocabulary: int) -> tuple[nn.Module, Loss]:
    from x_transformers import Decoder, TransformerWrapper

    shape = recipe.shape
    layers = Decoder(
        dim=shape.width,
        depth=shape.layers,
        heads=shape.heads,
        attn_dim_head=shape.head_dim,
        ff_mult=shape.hidden / shape.width,
        attn_flash=True,
    )
    model = TransformerWrapper(num_tokens=vocabulary, max_seq_len=shape.length, attn_layers=layers)
    return model, lambda ids, lengths, answers: cross_entropy(model(ids).flatten(0, 1), answers.flatten())
