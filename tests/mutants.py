"""Faults planted one at a time, to see that the tests which claim to protect a room do catch them.

Not collected by pytest. `python tests/mutants.py` plants each fault into a copy of src, never into the work tree, and
runs the tests of that fault there; it ends with 1 if a fault survives. A fault is found by its snippet alone, wherever
that stands, so files may be moved and merged; what cannot be planted any more is told before anything is run.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SOURCE = ROOT / "src"
SECONDS = 300  # a fault that makes its tests hang is a problem, not a catch
FAILED, NONE_COLLECTED = 1, 5  # pytest's exit codes
SLOW_IMPORTS = ("torch", "torch._dynamo", "scipy.stats", "tokenizers", "safetensors.torch", "rich.console")


@dataclass(frozen=True)
class Mutant:
    """A fault: `old` occurs exactly once in all of src and is replaced by `new`.

    `tests`: files or node ids under tests/, and at most one selection by keywords, "-k words"."""

    name: str
    room: str
    what: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    caught: bool
    by: str  # the test that failed, or why nothing was caught
    seconds: float


MODEL = (
    Mutant(
        "attention-scale",
        "model",
        "scores are divided by head_dim instead of its square root",
        "math.sqrt(q.shape[-1])  # batch head query key",
        "q.shape[-1]  # batch head query key",
        ("model/test_network.py", "-k fast_path"),
    ),
    Mutant(
        "timing-without-end",
        "study",
        "with a budget, timing goes on until every variant is timed",
        "run_jobs(engine, jobs, listen, lambda: stop() or late(), accept)",
        "run_jobs(engine, jobs, listen, stop, accept)",
        ("study/test_budget.py", "-k tenth"),
    ),
    Mutant(
        "final-scores-shrink",
        "study",
        "a shorter training shortens its final scores in the plan",
        "return float(fixed + share * (",
        "return float(share * (fixed + ",
        ("study/test_budget.py", "-k final_scores"),
    ),
    Mutant(
        "softmax-axis",
        "model",
        "softmax over queries instead of keys",
        "weights = scores.softmax(-1)",
        "weights = scores.softmax(-2)",
        ("model/test_network.py", "-k fast_path"),
    ),
    Mutant(
        "empty-row-uniform",
        "model",
        "a query that may see nothing attends to everything alike",
        ".softmax(-1).masked_fill(hidden, 0.0)",
        ".softmax(-1)",
        ("model/test_network.py", "-k nothing_to_see"),
    ),
    Mutant(
        "causal-mask-dropped",
        "model",
        "the causal mask is dropped where rows are padded",
        "if self.causal and self.layout.time > 1:",
        "if self.causal and self.triangle and self.layout.time > 1:",
        ("model/test_network.py", "-k future"),
    ),
    Mutant(
        "causal-mask-off-by-one",
        "model",
        "a token sees the one after it where the mask is written out",
        "visible = (self.keys <= self.queries[:, None])[None, None]",
        "visible = (self.keys <= self.queries[:, None] + 1)[None, None]",
        ("model/test_network.py", "-k future"),
    ),
    Mutant(
        "padding-mask-dropped",
        "model",
        "tokens attend to padding",
        "return real if visible is None else visible & real",
        "return visible",
        ("model/test_network.py", "-k padding"),
    ),
    Mutant(
        "second-bias-lost",
        "model",
        "of several biases only the first is added in the fast path",
        "total = sum(biases[1:], biases[0])[None]",
        "total = biases[0][None]",
        ("parts/test_pairs.py", "-k say"),
    ),
    Mutant(
        "local-attention-future",
        "model",
        "local attention sees the future inside its window",
        "visible = visible & (site.offset >= 0)",
        "visible = visible & True",
        ("model/test_local_attention.py",),
    ),
    Mutant(
        "local-attention-gradient",
        "model",
        "gradients of overlapping windows overwrite one another",
        "total[:, first : first + blocks, : piece.shape[2]] += piece",
        "total[:, first : first + blocks, : piece.shape[2]] = piece",
        ("model/test_local_attention.py",),
    ),
    Mutant(
        "pre-norm-residual",
        "model",
        "the feed-forward output is added to the normed copy instead of the stream",
        "return residual(x, normed, parts) +",
        "return residual(normed, normed, parts) +",
        ("model/test_oracle_gpt2.py",),
    ),
    Mutant(
        "post-norm-order",
        "model",
        "a post-norm block norms the layer's output before the sum",
        (
            "        x = self.attention_norm(x)\n"
            "        return self.forward_norm(residual(x, x, parts) + self.fed_forward(x, parts))"
        ),
        "        return self.forward_norm(x + self.fed_forward(self.attention_norm(x), parts))",
        ("pretrained/test_families.py", "-k hidden_states"),
    ),
    Mutant(
        "cache-position",
        "model",
        "in cached decoding every piece is embedded as if it began the text",
        "layout = Layout.full(batch, time, past, device=ids.device)",
        "layout = Layout.full(batch, time, device=ids.device)",
        ("model/test_kv_cache.py",),
    ),
    Mutant(
        "cache-grows-short",
        "model",
        "earlier tokens are lost when the cache grows",
        "torch.cat((before, room), 3)",
        "torch.cat((before * 0, room), 3)",
        ("model/test_kv_cache.py",),
    ),
    Mutant(
        "loss-chunk-gradient",
        "model",
        "only the last chunk's gradient reaches the output weights",
        "to_weight.addmm_(shares.t(), rows)",
        "to_weight = torch.mm(shares.t(), rows)",
        ("model/test_loss.py",),
    ),
    Mutant(
        "label-smoothing",
        "model",
        "smoothing is not shared out over the vocabulary",
        "shares.sub_(own_share * smoothing / entries)",
        "shares.sub_(smoothing)",
        ("model/test_loss.py",),
    ),
    Mutant(
        "loss-underflow",
        "model",
        "an answer whose probability underflows costs infinitely much",
        "if chosen.min() > TINY:",
        "if chosen.min() >= 0:",
        ("model/test_loss.py",),
    ),
    Mutant(
        "mean-counts-padding",
        "model",
        "the sentence vector divides by the padded length",
        "return sums / self.lengths.clamp(min=1)[:, None]",
        "return sums / self.time",
        ("model/test_seam.py", "-k pool"),
    ),
    Mutant(
        "init-stream-reuse",
        "model",
        "all parameters draw their first weights from one stream",
        'seed_for(seed, "init", name)',
        'seed_for(seed, "init")',
        ("model/test_init.py",),
    ),
    Mutant(
        "dropout-in-evaluation",
        "model",
        "dropout is active in evaluation",
        "return self.training and self.share > 0",
        "return self.share > 0",
        ("model/test_dropout.py",),
    ),
    Mutant(
        "dropout-same-every-step",
        "model",
        "every step drops the same numbers",
        'seed_for(seed, "dropout", name, step)',
        'seed_for(seed, "dropout", name)',
        ("model/test_dropout.py",),
    ),
    Mutant(
        "recomputed-dropout",
        "model",
        "dropout draws anew when a block is computed again for its gradient",
        "generator.set_state(old)",
        "generator.get_state()",
        ("model/test_save_memory.py", "-k bit_for_bit"),
    ),
    Mutant(
        "mix-shows-hidden",
        "model",
        "a part that mixes weights can show what is hidden",
        "weights = weights if visible is None else weights.masked_fill(~visible, 0.0)",
        "pass",
        ("model/test_seam.py", "-k hidden"),
    ),
    Mutant(
        "shared-keys-init",
        "model",
        "heads that share keys start with the keys of the wrong heads",
        "firsts = rows[1:, :: self.shared_by].flatten()",
        "firsts = rows[1:, : shape.heads // self.shared_by].flip(0).flatten()",
        ("model/test_seam.py", "-k share_keys"),
    ),
    Mutant(
        "attached-lost",
        "model",
        "what parts attach to earlier keys is lost in cached decoding",
        "torch.cat((before, new.detach()), 1)",
        "torch.cat((before * 0, new.detach()), 1)",
        ("model/test_seam.py", "-k attaches"),
    ),
    Mutant(
        "linear-attention-future",
        "model",
        "linear attention sees the future inside a chunk",
        "(q @ k.transpose(-2, -1)).tril() @ v",
        "(q @ k.transpose(-2, -1)) @ v",
        ("model/test_seam.py", "-k linear"),
    ),
)

PARTS = (
    Mutant(
        "window-off-by-one",
        "parts",
        "a window of 8 shows 9 tokens",
        "else site.offset < self.size",
        "else site.offset <= self.size",
        ("parts/test_oracle_local.py",),
    ),
    Mutant(
        "window-reach",
        "parts",
        "a window tells less reach than it allows",
        "return (self.size - 1, 0) if causal",
        "return (max(0, self.size - 2), 0) if causal",
        ("parts/test_oracle_local.py",),
    ),
    Mutant(
        "block-borders",
        "parts",
        "blocks of keys are shifted by one",
        "== site.keys[None, :] // self.size",
        "== (site.keys[None, :] + 1) // self.size",
        ("parts/test_oracle_local.py",),
    ),
    Mutant(
        "rope-pairing",
        "parts",
        "neighbours are paired instead of halves",
        "both.roll(both.shape[-1] // 2, -1)",
        "both.roll(1, -1)",
        ("parts/test_oracle_rope.py",),
    ),
    Mutant(
        "rope-base",
        "parts",
        "angles fall by the square root of the base",
        "self.paces = base**-pairs",
        "self.paces = base ** -(pairs / 2)",
        ("parts/test_oracle_rope.py",),
    ),
    Mutant(
        "rope-gradient",
        "parts",
        "the gradient is turned on instead of back",
        "return *rotated(q, k, cosine, sine, -1), None, None",
        "return *rotated(q, k, cosine, sine, 1), None, None",
        ("parts/test_oracle_rope.py",),
    ),
    Mutant(
        "alibi-slopes",
        "parts",
        "slopes fall by 7/8 of the power",
        "[2 ** (-8 * (",
        "[2 ** (-7 * (",
        ("parts/test_oracle_alibi.py",),
    ),
    Mutant(
        "alibi-odd-heads",
        "parts",
        "heads beyond a power of two take the wrong slopes",
        "(-4 * (2 * ",
        "(-4 * (",
        ("parts/test_oracle_alibi.py",),
    ),
    Mutant(
        "t5-bucket",
        "parts",
        "far distances are rounded to the next bucket",
        "(exact + far.long())",
        "(exact + far.round().long())",
        ("parts/test_oracle_t5.py",),
    ),
    Mutant(
        "disentangled-scale",
        "parts",
        "three kinds of scores are scaled as two",
        "/ math.sqrt(3)",
        "/ math.sqrt(2)",
        ("parts/test_oracle_disentangled.py",),
    ),
    Mutant(
        "sinusoidal-order",
        "parts",
        "sines and cosines stand in halves instead of by turns",
        "torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)",
        "torch.cat((angles.sin(), angles.cos()), -1)",
        ("parts/test_oracle_sinusoidal.py",),
    ),
    Mutant(
        "merge-axis",
        "parts",
        "head outputs are interleaved instead of set side by side",
        "return heads.transpose(1, 2).flatten(2)",
        "return heads.permute(0, 2, 3, 1).flatten(2)",
        ("parts/test_oracle_merge.py",),
    ),
    Mutant(
        "shift-axis",
        "parts",
        "shift moves tokens instead of heads",
        "heads.roll(-1, dims=1)",
        "heads.roll(-1, dims=2)",
        ("parts/test_oracle_merge.py",),
    ),
    Mutant(
        "attention-pool-padding",
        "parts",
        "the pooling query sees padding",
        "weights = scores.masked_fill(~real, torch.finfo(x.dtype).min).softmax(-1).masked_fill(~real, 0.0)",
        "weights = scores.softmax(-1)",
        ("parts/test_oracle_pool.py",),
    ),
    Mutant(
        "experts-weights",
        "parts",
        "chosen experts are weighed by their share of all experts",
        "weights = weights / weights.sum(-1, keepdim=True)",
        "pass",
        ("parts/test_oracle_feed_forward.py", "-k loop"),
    ),
    Mutant(
        "gate-activation",
        "parts",
        "the gate of a gated layer is activated instead of its first projection",
        "self.activation(own.up(x)) * self.gates[layer](x)",
        "own.up(x) * self.activation(self.gates[layer](x))",
        ("parts/test_oracle_feed_forward.py", "-k llamas"),
    ),
    Mutant(
        "sink-kept",
        "parts",
        "the sink's share is given to the keys",
        "torch.cat((scores, sink), -1).softmax(-1)[..., :-1]",
        "torch.cat((scores, sink), -1)[..., :-1].softmax(-1)",
        ("parts/test_oracle_weights.py", "-k sink"),
    ),
    Mutant(
        "forgetting-own-key",
        "parts",
        "a key is forgotten by its own gate, too",
        "cumsum(-1)  # batch head key",
        "cumsum(-1) - site.attached[self].transpose(1, 2)  # batch head key",
        ("parts/test_oracle_relative.py", "-k forgetting"),
    ),
    Mutant(
        "value-residual-swapped",
        "parts",
        "the two shares of values are swapped",
        "first * site.memory[self] + own * v",
        "own * site.memory[self] + first * v",
        ("parts/test_oracle_keys.py", "-k first_layer"),
    ),
)

DATA = (
    Mutant(
        "table-of-any-columns",
        "data",
        "a table whose columns nobody knows is called a row with too many",
        "if len(first) > 2 and len(rows) > 1 and all(len(cells) == len(first) for _, cells in rows):",
        "if False:",
        ("data/test_reading_refusals.py", "-k bad_table"),
    ),
    Mutant(
        "version-of-the-metadata",
        "data",
        "records name the version that was installed, not the one that runs",
        '"fairtrial": __version__,',
        '"fairtrial": "0.1.0",',
        ("house/test_package.py", "-k names_the_same"),
    ),
    Mutant(
        "vocabulary-unsorted",
        "data",
        "words of equal count keep the order in which they came",
        "key=lambda item: (-item[1], item[0])",
        "key=lambda item: -item[1]",
        ("data/test_tokenizer.py", "-k ranked"),
    ),
    Mutant(
        "min-count",
        "data",
        "a word needs one occurrence more than min_count",
        "if count >= tokens.min_count",
        "if count > tokens.min_count",
        ("data/test_tokenizer.py", "-k rare"),
    ),
    Mutant(
        "unknown-id",
        "data",
        "unknown words become padding",
        "unk_token=UNKNOWN",
        "unk_token=PAD",
        ("data/test_tokenizer.py", "-k rare"),
    ),
    Mutant(
        "vocabulary-sees-validation",
        "data",
        "a trial's word vocabulary is fitted on validation, too",
        ".counts(index.places(prepared.splits.train))",
        ".counts(index.places(prepared.known))",
        ("trial/test_same_documents.py", "-k training_text_alone"),
    ),
    Mutant(
        "byte-pairs-see-validation",
        "data",
        "a trial's byte pairs are fitted on validation, too",
        "return [document.text for document in self.splits.train]",
        "return [document.text for document in self.known]",
        ("trial/test_same_documents.py", "-k training_text_alone"),
    ),
    Mutant(
        "split-column-ignored",
        "data",
        "rows that say test are trained on",
        'if "split" in values else file_split',
        'if "split" in values and file_split != "train" else file_split',
        ("data/test_columns.py", "-k honoured"),
    ),
    Mutant(
        "test-row-in-train",
        "data",
        "a row of a test file may call itself training",
        'if file_split != "train" and part_of(split) != part_of(file_split):',
        "if False:",
        ("data/test_columns.py", "-k another_split"),
    ),
    Mutant(
        "copies-of-the-split-alone",
        "data",
        "copies are counted against a trial's training split, so that every seed has another number",
        "self.splits.index.copies(self.known, items)",
        "self.splits.index.copies(self.splits.train, items)",
        ("trial/test_notes.py", "-k one_number"),
    ),
    Mutant(
        "length-sees-tests",
        "data",
        "the length is chosen from the test set's texts, too",
        "texts = [document.text for document in corpus.train if document not in tested]",
        "texts = [document.text for document in (*corpus.train, *tested)]",
        ("trial/test_default_length.py", "-k read_whole"),
    ),
    Mutant(
        "length-follows-the-seed",
        "data",
        "the length is chosen from a trial's own training split",
        "texts = [document.text for document in corpus.train if document not in tested]",
        "texts = [document.text for document in prepared.splits.train]",
        ("trial/test_default_length.py", "-k one_length"),
    ),
    Mutant(
        "duplicates-straddle",
        "data",
        "copies of one text may stand in train and test",
        "((np.arange(count), keys), (grouped, groups)",
        "((np.arange(count), np.arange(count)), (grouped, groups)",
        ("data/test_splitting.py",),
    ),
    Mutant(
        "groups-straddle",
        "data",
        "documents of one group may stand in train and test",
        "(grouped, groups), (firsts, near)",
        "(firsts, near)",
        ("data/test_splitting.py",),
    ),
    Mutant(
        "stratification",
        "data",
        "classes are not represented by their shares",
        "if gain > 0 and not empties:",
        "if not empties:",
        ("data/test_splitting.py",),
    ),
    Mutant(
        "class-emptied",
        "data",
        "a split may take a class whole",
        "empties = any(taken[label] + count >= sizes[label] for",
        "empties = any(taken[label] + count > sizes[label] for",
        ("data/test_splitting.py",),
    ),
    Mutant(
        "validation-share",
        "data",
        "validation takes the share of the test set",
        "take(train, data.validation, rng,",
        "take(train, data.test, rng,",
        ("data/test_splitting.py",),
    ),
    Mutant(
        "validation-seed",
        "data",
        "every seed has the same validation set",
        '(seed, "split", "validation")',
        '(data.split_seed, "split", "validation")',
        ("data/test_splitting.py",),
    ),
    Mutant(
        "no-gap-before-test",
        "data",
        "a running text is trained on up to the first test paragraph",
        "documents[: max(0, start - 1)]",
        "documents[:start]",
        ("data/test_splitting.py",),
    ),
    Mutant(
        "near-duplicate-threshold",
        "data",
        "near duplicates need a Jaccard index, or a share, of 0.6",
        "HALF = 0.5",
        "HALF = 0.6",
        ("data/test_duplicates.py",),
    ),
    Mutant(
        "near-candidates-dropped",
        "data",
        "pairs of texts that may share enough are not compared",
        "np.minimum(of_test + left_test[rows]",
        "np.minimum(of_test + 0 * left_test[rows]",
        ("data/test_duplicates.py",),
    ),
    Mutant(
        "dropped-word-is-predicted",
        "data",
        "a word that is read as unknown is still predicted as itself",
        "return replace(batch, ids=whole[:, :-1].copy(), answers=whole[:, 1:].copy())",
        "return replace(batch, ids=whole[:, :-1].copy())",
        ("data/test_batches.py", "-k rare"),
    ),
    Mutant(
        "teacher-of-the-wrong-word",
        "training",
        "a teacher is asked one token too late",
        "np.pad(batch.ids, ((0, 0), (1, 0)), constant_values=-1)[:, :-1], batch.ids]",
        "batch.ids, np.pad(batch.ids, ((0, 0), (0, 1)), constant_values=-1)[:, 1:]]",
        ("training/test_teacher.py",),
    ),
    Mutant(
        "pretraining-never-ends",
        "data",
        "a model is trained on the further text alone",
        "(self.first if index < self.until else self.own).batch(index)",
        "self.first.batch(index)",
        ("trial/test_trial.py", "-k further_text"),
    ),
    Mutant(
        "pretraining-on-the-test-set",
        "data",
        "further text keeps what is scored",
        "zip(documents, status, strict=True) if found == CLEAN)",
        "zip(documents, status, strict=True))",
        ("trial/test_trial.py", "-k further_text"),
    ),
    Mutant(
        "average-forgotten",
        "training",
        "averaged weights are not saved in a checkpoint",
        'progress.average = {name: tensors[f"average/{name}"].to(loop.device) for name in progress.average}',
        "pass",
        ("trial/test_trial.py", "-k averaged"),
    ),
    Mutant(
        "training-curve-of-everything",
        "training",
        "a point of the training curve scores the whole training set",
        'return min(most, max(LEAST_OF_TRAIN, self.items("validation")))',
        "return most",
        ("training/test_training_end.py", "-k point"),
    ),
    Mutant(
        "near-copies-straddle",
        "data",
        "near copies are not kept together when a set is carved",
        "near = near_clusters([documents[number].text for number in firsts.tolist()])",
        "near = np.arange(len(firsts))",
        ("data/test_splitting.py", "-k near"),
    ),
    Mutant(
        "near-duplicate-search",
        "data",
        "the search for near duplicates looks up one gram too few",
        "needed = sizes - np.ceil(share * sizes - 1e-9).astype(int) + 1",
        "needed = sizes - np.ceil(share * sizes - 1e-9).astype(int)",
        ("data/test_duplicates.py", "-k half"),
    ),
    Mutant(
        "tsv-quoting",
        "data",
        "quotes in a TSV file are taken as CSV quoting",
        '(number, line.split("\\t")) for',
        '(number, next(csv.reader([line], delimiter="\\t"))) for',
        ("data/test_reading.py", "-k tsv"),
    ),
    Mutant(
        "course-tsv-quoting",
        "data",
        "quotes in the course's files are taken as CSV quoting",
        '(number, line.split("\\t"))',
        '(number, next(__import__("csv").reader([line], delimiter="\\t")))',
        ("data/test_reading.py", "-k tsv"),
    ),
    Mutant(
        "bom",
        "data",
        "a byte order mark becomes part of the text",
        "begin = 3 if data.startswith(",
        "begin = 0 if data.startswith(",
        ("data/test_reading.py",),
    ),
    Mutant(
        "line-ends",
        "data",
        "form feeds and Unicode separators end a line",
        'text.replace("\\r\\n", "\\n").replace("\\r", "\\n").split("\\n")',
        "text.splitlines()",
        ("data/test_reading.py", "-k end_lines"),
    ),
    Mutant(
        "epoch-order",
        "data",
        "every epoch has the same order",
        '(self.seed, "order", epoch).permutation',
        '(self.seed, "order").permutation',
        ("data/test_batches.py",),
    ),
    Mutant(
        "partial-batch-dropped",
        "data",
        "the last, smaller batch of an epoch is dropped",
        "return -(-self.items // self.size)",
        "return max(1, self.items // self.size)",
        ("data/test_batches.py",),
    ),
    Mutant(
        "targets-not-shifted",
        "data",
        "windows predict their own inputs",
        "return Batch(windows[:, :-1], None, windows[:, 1:],",
        "return Batch(windows[:, :-1], None, windows[:, :-1],",
        ("data/test_batches.py",),
    ),
    Mutant(
        "masking-shares",
        "data",
        "hidden words are masked 90/10/0 instead of 80/10/10",
        "MASKED, RANDOM = 0.8, 0.1",
        "MASKED, RANDOM = 0.9, 0.1",
        ("training/test_task_mlm.py", "-k hidden"),
    ),
    Mutant(
        "masking-special-tokens",
        "data",
        "special tokens are hidden like words",
        "positions = np.flatnonzero(ids >= self.first)",
        "positions = np.flatnonzero(ids >= 0)",
        ("training/test_task_mlm.py", "-k hidden"),
    ),
    Mutant(
        "label-leak",
        "data",
        "words that tell the class are never named",
        "own >= PURE * count",
        "own > count",
        ("data/test_data_audit.py",),
    ),
    Mutant(
        "copies-never-red",
        "data",
        "many copies in the training set are amber like a few",
        "return most if count > MANY * documents else AMBER",
        "return AMBER",
        ("data/test_data_audit.py", "-k amber"),
    ),
    Mutant(
        "vocabulary-audit",
        "data",
        "a vocabulary that was fitted on test text passes",
        "len(documents), RED, meaning, examples, none)",
        "len(documents), PASS, meaning, examples, none)",
        ("data/test_data_audit.py", "-k vocabulary"),
    ),
    Mutant(
        "cleaning-keeps-near",
        "data",
        "cleaning leaves near duplicates in training",
        "elif kind != CLEAN and options.near:",
        "elif not options.near:",
        ("data/test_cleaning.py",),
    ),
    Mutant(
        "column-by-any-word",
        "data",
        "a column `text_id` may be the text",
        "not words & (others | NOT_THE_THING)",
        "not words & others",
        ("data/test_columns.py", "-k tell_something"),
    ),
    Mutant(
        "column-in-doubt",
        "data",
        "of several columns that could be meant the first is read",
        "        if len(places) > 1:\n            raise BadInput(*_doubt(",
        "        if len(places) > 9:\n            raise BadInput(*_doubt(",
        ("data/test_columns.py", "-k doubt"),
    ),
    Mutant(
        "row-of-another-split",
        "data",
        "a test file's rows that say train are trained on",
        'if file_split != "train" and part_of(split) != part_of(file_split):',
        'if file_split == "validation" and part_of(split) == "test":',
        ("data/test_columns.py", "-k another_split"),
    ),
    Mutant(
        "damaged-cache-believed",
        "data",
        "a cached file is taken although its checksum differs",
        'if _checksum(path.stem, table, [raw[begin:]]) != facts["sha256"]:',
        'if facts["sha256"] == "":',
        ("data/test_cache.py", "-k damaged"),
    ),
    Mutant(
        "cache-for-another-recipe",
        "data",
        "what is cached for one recipe's columns is taken for another's",
        'return key_of(sums, {**asdict(data), "source": ""}, *how)',
        "return key_of(sums, *how)",
        ("data/test_cache.py", "-k another_recipe"),
    ),
    Mutant(
        "cache-of-older-code",
        "data",
        "what older code has cached is taken",
        "json.dumps([*parts, code()], sort_keys=True)",
        "json.dumps([*parts], sort_keys=True)",
        ("data/test_cache.py", "-k another_recipe"),
    ),
    Mutant(
        "cache-drops-newest",
        "data",
        "a full cache loses what was used last",
        "return sorted(found, key=lambda file: file[1].st_mtime)",
        "return sorted(found, key=lambda file: -file[1].st_mtime)",
        ("data/test_cache.py", "-k longest_unused"),
    ),
    Mutant(
        "length-without-start",
        "data",
        "a language model's length has no room for the start mark",
        'marks = int(recipe.task == "lm")',
        "marks = 0",
        ("trial/test_default_length.py", "-k start_mark"),
    ),
    Mutant(
        "length-of-half",
        "data",
        "half of all texts are longer than the length that is chosen",
        "needed = tokens[math.ceil(WHOLE * len(tokens)) - 1]",
        "needed = tokens[len(tokens) // 2]",
        ("trial/test_default_length.py", "-k nearly_all"),
    ),
)

TRAINING = (
    Mutant(
        "clip-skipped",
        "training",
        "gradients are not clipped",
        "if math.isfinite(training.clip):",
        "if math.isnan(training.clip):",
        ("trial/test_trial.py", "-k clip"),
    ),
    Mutant(
        "epoch-drops-rows",
        "training",
        "batches that do not fill a step are left out of the epoch",
        "per_epoch = -(-task.batches.batches_per_epoch() // training.accumulate)",
        "per_epoch = max(1, task.batches.batches_per_epoch() // training.accumulate)",
        ("trial/test_trial.py", "-k epoch"),
    ),
    Mutant(
        "accumulation",
        "training",
        "accumulated batches are summed instead of averaged",
        "count = sum(batch.count for batch in batches)",
        "count = batches[0].count",
        ("trial/test_trial.py", "-k accumulated"),
    ),
    Mutant(
        "warmup-off-by-one",
        "training",
        "warm-up begins at a rate of zero",
        "(step + 1) / training.warmup_steps",
        "step / training.warmup_steps",
        ("training/test_optimizer.py",),
    ),
    Mutant(
        "cosine-schedule",
        "training",
        "the cosine schedule falls below zero",
        "0.5 * (1 + math.cos(math.pi * done))",
        "math.cos(math.pi * done)",
        ("training/test_optimizer.py",),
    ),
    Mutant(
        "decay-on-norms",
        "training",
        "weight decay pulls norms and biases, too",
        "if parameter.ndim >= 2 else 0.0",
        "if parameter.ndim >= 1 else 0.0",
        ("training/test_optimizer.py",),
    ),
    Mutant(
        "adamw-is-adam",
        "training",
        "AdamW's decay goes through the moments",
        '"adamw": AdamW,',
        '"adamw": Adam,',
        ("training/test_optimizer.py",),
    ),
    Mutant(
        "best-reversed",
        "training",
        "the worst weights are kept",
        "or score.selection_key > ",
        "or score.selection_key < ",
        ("trial/test_trial.py", "-k best_weights"),
    ),
    Mutant(
        "classifier-chosen-by-loss",
        "training",
        "a classifier's weights are chosen by loss, which keeps overconfident networks that learned little",
        "Score(metrics, (float(right.mean()), -float(nats.mean())), outcomes)",
        "Score(metrics, (-float(nats.mean()), float(right.mean())), outcomes)",
        ("training/test_score_classify.py",),
    ),
    Mutant(
        "fewest-steps-lost",
        "training",
        "little data are trained on for the recipe's epochs only, whatever its least number of steps",
        "max(self.least, math.ceil(",
        "max(0, math.ceil(",
        ("recipe/test_duration.py",),
    ),
    Mutant(
        "bump-is-improvement",
        "training",
        "a curve that comes back from a bump counts as still improving",
        "before = min(loss for step, loss in points.items() if step <= late)",
        "before = points[max(step for step in points if step <= late)]",
        ("training/test_training_end.py",),
    ),
    Mutant(
        "budget-without-strides",
        "study",
        "a budget that exact final scores would fill is left to them",
        "    if seconds <= FINAL_SHARE * available:",
        "    if True:",
        ("study/test_budget.py",),
    ),
    Mutant(
        "ctrl-c-raised-while-loading",
        "cli",
        "Ctrl-C is raised inside a library that is being loaded, which may swallow it",
        '        if frame.f_code.co_filename.startswith("<frozen importlib"):',
        "        if False:",
        ("cli/test_mistakes.py",),
    ),
    Mutant(
        "fork-server-hears-ctrl-c",
        "engines",
        "a fork server that is loading torch dies of Ctrl-C",
        "    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})",
        "    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())",
        ("engines/test_processes.py",),
    ),
    Mutant(
        "best-not-restored",
        "training",
        "the last weights are kept under the name of the best",
        "put_weights(self.network, progress.best_weights)",
        "pass",
        ("trial/test_trial.py", "-k best_weights"),
    ),
    Mutant(
        "patience-off-by-one",
        "training",
        "early stopping waits for one evaluation more",
        ">= self.training.patience:",
        "> self.training.patience:",
        ("trial/test_trial.py", "-k early_stopping"),
    ),
    Mutant(
        "chosen-on-test",
        "training",
        "weights are chosen on a test set",
        'choose_on = "validation" if splits.validation else None',
        "choose_on = next(iter(splits.tests)) if splits.validation else None",
        ("trial/test_trial.py", "-k scored_once"),
    ),
    Mutant(
        "sliding-counts-twice",
        "training",
        "overlapping windows count tokens twice",
        "yield Window(number, max(0, end - length), end, done)",
        "yield Window(number, max(0, end - length), end, max(0, end - length))",
        ("training/test_score_lm.py",),
    ),
    Mutant(
        "bits-per-byte",
        "statistics",
        "what the tokens hide is not paid for in bits per byte",
        'kept["nll"] + kept.get("spelling", 0.0)',
        'kept["nll"] + 0 * kept.get("spelling", 0.0)',
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "scoring-in-training-mode",
        "training",
        "scores are taken with dropout",
        "network.eval()\n    try:\n        with torch.no_grad(), computing(network):",
        "network.train()\n    try:\n        with torch.no_grad(), computing(network):",
        ("training/test_score_lm.py", "-k drops"),
    ),
    Mutant(
        "confusion-transposed",
        "training",
        "the confusion table has guesses in its rows",
        "np.bincount(labels * classes + guesses,",
        "np.bincount(guesses * classes + labels,",
        ("training/test_score_classify.py",),
    ),
    Mutant(
        "mask-on-the-cpu",
        "model",
        "the mask of a padded batch is made on the CPU, whatever device computes",
        "torch.zeros(visible.shape, dtype=dtype, device=visible.device)",
        "torch.zeros(visible.shape, dtype=dtype)",
        ("training/test_device.py", "-k every_part"),
    ),
    Mutant(
        "large-set-at-full-context",
        "training",
        "the share of the context that a large set was scored with is not told",
        'score.metrics["full_context"] = context',
        'score.metrics["context"] = context',
        ("training/test_score_lm.py", "-k strides"),
    ),
    Mutant(
        "stop-token-lost",
        "training",
        "sentences are trained and scored without their stop marks",
        "(begins + sizes - 1, stop)",
        "(begins + sizes - 1, start)",
        ("baselines/test_baseline_outcomes.py", "-k stop_marks"),
    ),
    Mutant(
        "checkpoint-without-optimizer",
        "training",
        "a resumed trial begins with fresh optimizer moments",
        'put_optimizer(loop.optimizer, under("optimizer/", tensors))',
        'under("optimizer/", tensors)',
        ("training/test_checkpoint.py",),
    ),
    Mutant(
        "checkpoint-without-buffers",
        "training",
        "checkpoints leave out what parts remember, such as the draws so far",
        "(*network.named_parameters(), *network.named_buffers())",
        "network.named_parameters()",
        ("parts/test_oracle_merge.py", "-k resumed"),
    ),
    Mutant(
        "checkpoint-patience",
        "training",
        "a resumed trial forgets how long it has waited for a better score",
        '("step", "best_step", "stale", "stopped")',
        '("step", "best_step", "stopped")',
        ("trial/test_trial.py", "-k waited"),
    ),
    Mutant(
        "checkpoint-checksum",
        "training",
        "a damaged checkpoint is used",
        'if hashlib.sha256(content).hexdigest() != line["sha256"]:',
        'if len(content) != line["bytes"]:',
        ("training/test_checkpoint.py", "-k flipped"),
    ),
    Mutant(
        "events-unproven",
        "training",
        "a damaged event log is continued",
        'if facts.get("events_sha256", found) != found:',
        "if False:",
        ("training/test_checkpoint.py", "-k event_log"),
    ),
    Mutant(
        "events-changed-meanwhile",
        "record",
        "a result is written beside an event log that was changed while training",
        'if self.log.size and sums.get("events.jsonl") != self.log.sha256:',
        "if False:",
        ("record/test_record.py", "-k meanwhile"),
    ),
    Mutant(
        "records-swapped",
        "study",
        "a record in another variant's folder is taken for that variant's",
        'wanted = facts.get("asked") or asked.get(',
        "wanted = asked.get(",
        ("record/test_proof.py", "-k swapped_records"),
    ),
    Mutant(
        "verdict-unproven",
        "report",
        "a verdict is told though the outcomes that it rests on were changed",
        "        self.files.refuse_changed()\n",
        "",
        ("record/test_proof.py", "-k swapped_records"),
    ),
    Mutant(
        "shown-unproven",
        "record",
        "a record is shown whose files are not those that its trial wrote",
        "        for name in names if self.complete else ():",
        "        for name in ():",
        ("record/test_proof.py", "-k refused_by_name"),
    ),
    Mutant(
        "limit-on-memory-unread",
        "trial",
        "a limit on memory is not asked for: libraries crash, or compute otherwise",
        "    if whole > left:",
        "    if False:",
        ("cli/test_mistakes.py", "-k limit_on_memory"),
    ),
    Mutant(
        "another-product",
        "model",
        "where oneDNN's product fails for want of memory another one, with other bits, takes its place",
        '    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):',
        "    if True:",
        ("model/test_loss.py", "-k not_replaced"),
    ),
    Mutant(
        "second-ctrl-c",
        "cli",
        "a second Ctrl-C while a command ends is a traceback",
        "        signal.signal(signal.SIGINT, signal.SIG_IGN)\n",
        "        pass\n",
        ("trial/test_kill.py", "-k last_words"),
    ),
    Mutant(
        "trend-without-sizes",
        "statistics",
        "a trend is a line through zero",
        "np.linalg.pinv(design)[1:]",
        "np.linalg.pinv(design[:, 1:])",
        ("statistics/test_crossed.py", "-k trend"),
    ),
    Mutant(
        "atlas-in-families",
        "apps",
        "every study of an atlas is a family of its own",
        'judge_study("atlas", outcomes, one_family=True)',
        'judge_study("atlas", outcomes)',
        ("apps/test_atlas.py", "-k one_family"),
    ),
    Mutant(
        "two-writers",
        "disk",
        "two processes write one file at once",
        "with disk_errors(path), _alone(neighbour):",
        "with disk_errors(path):",
        ("record/test_disk.py", "-k take_turns"),
    ),
    Mutant(
        "checksum-taken-away",
        "record",
        "a result without its checksum is taken for one of version 0.1",
        "if version < least:",
        "if False:",
        ("record/test_proof.py", "-k refused_by_name"),
    ),
    Mutant(
        "events-told-twice",
        "training",
        "events after the last checkpoint stay and are told again",
        "record.log.cut(saved or 0)",
        "record.log.cut(10**9)",
        ("training/test_checkpoint.py",),
    ),
    Mutant(
        "frozen-layers",
        "training",
        "one block too many is frozen",
        "parameter.requires_grad_(depths[name] > layers)",
        "parameter.requires_grad_(depths[name] > layers + 1)",
        ("pretrained/test_finetune.py", "-k frozen"),
    ),
    Mutant(
        "layer-decay",
        "training",
        "lower blocks learn faster than higher ones",
        "(max(depths.values()) - depths[name])",
        "depths[name]",
        ("pretrained/test_finetune.py", "-k learning_rate"),
    ),
)

STATISTICS = (
    Mutant(
        "degrees-of-freedom",
        "statistics",
        "where items dominate, degrees of freedom are those of seeds",
        "return item / count, items - 1",
        "return item / count, seeds - 1",
        ("statistics/test_crossed.py",),
    ),
    Mutant(
        "ddof",
        "statistics",
        "the variance over seeds is divided by their number",
        "count * float(by_seed.var(ddof=1)) / seeds",
        "count * float(by_seed.var(ddof=0)) / seeds",
        ("statistics/test_crossed.py",),
    ),
    Mutant(
        "one-sided-p",
        "statistics",
        "the p-value is one-sided",
        "return 2 * self.p_above(abs(self.difference))",
        "return self.p_above(abs(self.difference))",
        ("statistics/test_crossed.py",),
    ),
    Mutant(
        "negative-variance",
        "statistics",
        "a source that varies less than the rest shrinks the interval",
        "if seed <= rest and item <= rest:",
        "if seed <= 0 and item <= 0:",
        ("statistics/test_crossed.py",),
    ),
    Mutant(
        "ratio-linearisation",
        "statistics",
        "a ratio's spread ignores the weights of items",
        "return ratio + (sums - ratio * weights) / weights.mean(1, keepdims=True)",
        "return sums / weights.mean(1, keepdims=True)",
        ("statistics/test_crossed.py",),
    ),
    Mutant(
        "holm-order",
        "statistics",
        "Holm's factors grow instead of falling",
        "factors = len(p) - np.arange(len(p))",
        "factors = 1 + np.arange(len(p))",
        ("statistics/test_family.py",),
    ),
    Mutant(
        "q-values",
        "statistics",
        "Benjamini and Hochberg's ranks are off by one",
        "factors = len(p) / (1 + np.arange(len(p)))",
        "factors = len(p) / (2 + np.arange(len(p)))",
        ("statistics/test_family.py",),
    ),
    Mutant(
        "looks-alpha",
        "statistics",
        "every interim look has the whole 5%",
        "Look(10, 0.015)",
        "Look(10, 0.05)",
        ("statistics/test_family.py",),
    ),
    Mutant(
        "look-ignored",
        "statistics",
        "an interim look is judged at 5%",
        "return ALPHA if self.look is None else self.look.alpha",
        "return ALPHA",
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "best-of-bias",
        "statistics",
        "a variant's own noise is taken as that of a difference",
        "np.mean([test.variance for test in tests])) / 2",
        "np.mean([test.variance for test in tests]))",
        ("statistics/test_family.py",),
    ),
    Mutant(
        "power-formula",
        "statistics",
        "the smallest detectable difference is found in half of the studies",
        "nctdtrinc(df, 1 - POWER, stdtrit(df, 1 - alpha / 2))",
        "nctdtrinc(df, 1 - POWER, stdtrit(df, 1 - 0.05 / 2))",
        ("statistics/test_power.py",),
    ),
    Mutant(
        "power-other-size",
        "statistics",
        "the mean square of items at another size leaves out the number of seeds",
        "item = seeds * shares.item + shares.rest",
        "item = shares.item + shares.rest",
        ("statistics/test_power.py",),
    ),
    Mutant(
        "equivalence-bounds",
        "statistics",
        "an interval that only overlaps the least difference counts as the same",
        "test.p_above(least - abs(test.difference))",
        "test.p_above(least)",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "tost-level",
        "statistics",
        "two one-sided tests at 5% take the 95% interval",
        "(p_same(comparison, least) if p_same_adjusted is None else p_same_adjusted) < alpha",
        "(p_same(comparison, least) if p_same_adjusted is None else p_same_adjusted) < 2 * alpha",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "fewest-seeds",
        "statistics",
        "four seeds get a verdict",
        "FEWEST_SEEDS = 5  # for a verdict",
        "FEWEST_SEEDS = 4  # for a verdict",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "never-differed",
        "statistics",
        "items that never differ count as certainty",
        "(1 - min(1.0, least / 100)) ** test.effective",
        "0.0 * (1 - min(1.0, least / 100)) ** test.effective",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "lower-is-better",
        "statistics",
        "a higher perplexity is a gain",
        "return self.difference if self.metric.higher_is_better else -self.difference",
        "return self.difference",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "seeds-swapped",
        "statistics",
        "a variant's seeds are paired with other seeds of the other",
        "indices = [self.seeds.index(seed) for seed in seeds]",
        "indices = list(range(len(seeds)))",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "hidden-words",
        "statistics",
        "vocabularies that hide different words are compared by perplexity",
        "if same_events(one, other):",
        'if np.array_equal(one["tokens"], other["tokens"]):',
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "clean-subset-swapped",
        "statistics",
        "clean and contaminated items are swapped",
        '"clean": status == CLEAN, "contaminated": status != CLEAN',
        '"clean": status != CLEAN, "contaminated": status == CLEAN',
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "copies-count",
        "statistics",
        "verdicts rest on contaminated items, too",
        'subset = "clean" if share > TOLERATED else "all"',
        'subset = "all"',
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "red-audit-ignored",
        "statistics",
        "a variant that failed its audit may be called better",
        'if passport.get("level") not in ("red", UNAUDITED) or passport.get("accepted"):',
        'if passport.get("level") not in ("scarlet", UNAUDITED) or passport.get("accepted"):',
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "unaudited-ignored",
        "statistics",
        "a variant whose audit broke down may be called better",
        'if passport.get("level") not in ("red", UNAUDITED) or passport.get("accepted"):',
        'if passport.get("level") not in ("red",) or passport.get("accepted"):',
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "influence-sign",
        "statistics",
        "an item's influence on macro-F1 has the wrong sign",
        "return total + influence - influence.mean()",
        "return total - influence + influence.mean()",
        ("statistics/test_influence.py",),
    ),
    Mutant(
        "wilson-centre",
        "statistics",
        "Wilson's interval is centred on the observed share",
        "centre = (share + Z * Z / (2 * items)) / (1 + Z * Z / items)",
        "centre = share",
        ("statistics/test_study_verdict.py", "-k wilson"),
    ),
    Mutant(
        "perplexity-interval",
        "statistics",
        "documents of unequal length count alike",
        "shares = np.full(units, 1 / units) if weights is None else weights / weights.sum()",
        "shares = np.full(units, 1 / units)",
        ("truth/test_golden.py",),
    ),
    Mutant(
        "power-family",
        "statistics",
        "power forgets the family",
        "test, level = comparison.test, alpha / max(1, family)",
        "test, level = comparison.test, alpha",
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "own-seeds-vocabulary",
        "statistics",
        "seeds of their own switch the guard of vocabularies off",
        "return ours.fingerprints == theirs.fingerprints if paired else ours.settings == theirs.settings",
        "return ours.fingerprints == theirs.fingerprints if paired else True",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "lower-case",
        "statistics",
        "a text in lower case is compared with the text as it is",
        "if ours and theirs and ours.normalisation != theirs.normalisation:",
        "if False:",
        ("statistics/test_verdict.py",),
    ),
    Mutant(
        "class-mix",
        "statistics",
        "the mix of classes counts as chance",
        "centred = right - means[:, stratum] + right.mean(1, keepdims=True)",
        "centred = right",
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "equivalence-family",
        "statistics",
        "equivalence is not corrected over the family",
        "same = dict(zip(tests, holm([p_same(comparisons[n], least[n]) for n in tests]), strict=True))",
        "same = dict(zip(tests, [p_same(comparisons[n], least[n]) for n in tests], strict=True))",
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "baseline-two-seeds",
        "statistics",
        "two seeds are enough to beat a baseline",
        "one.subset == subset and one.test and may_be_judged(one)",
        "one.subset == subset and one.test and not one.not_comparable_because",
        ("statistics/test_study_verdict.py",),
    ),
    Mutant(
        "equal-ignorance",
        "statistics",
        "two variants that learned nothing are called the same",
        "if unlearned and all(",
        "if False and all(",
        ("statistics/test_study_verdict.py",),
    ),
)

AUDIT = (
    Mutant(
        "check-always-passes",
        "audit",
        "a value above its limit passes",
        "passed = value <= limit",
        "passed = True",
        ("audit/test_checks.py",),
    ),
    Mutant(
        "tolerance",
        "audit",
        "small leaks are within the tolerance",
        "STRICT = 1e-9",
        "STRICT = 1e-3",
        ("audit/test_checks.py",),
    ),
    Mutant(
        "nan-passes",
        "audit",
        "an answer that is not a number counts as no change",
        "math.inf if any(map(math.isnan, changes))",
        "0.0 if any(map(math.isnan, changes))",
        ("audit/test_checks.py",),
    ),
    Mutant(
        "future-positions",
        "audit",
        "the last position before a changed future is not compared",
        "largest_change([before[:, : cut + 1]], [subject.log_p(other)[:, : cut + 1]])",
        "largest_change([before[:, :cut]], [subject.log_p(other)[:, :cut]])",
        ("audit/test_checks.py",),
    ),
    Mutant(
        "future-gradient",
        "audit",
        "the gradient that flows to later words is dropped",
        "float(gradient[:, cut + 1 :].max())",
        "float(gradient[:, cut + 1 :].max() * 0)",
        ("audit/test_zoo.py", "-k cheat"),
    ),
    Mutant(
        "padding-skipped",
        "audit",
        "nothing is padded in the padding check",
        "padding_widths(len(row), subject.longest)",
        "padding_widths(len(row), len(row))",
        ("audit/test_zoo.py", "-k cheat"),
    ),
    Mutant(
        "batch-mates-skipped",
        "audit",
        "rows are compared with themselves alone instead of in a batch",
        "    alone = [subject.answers([row])[0] for row in rows]\n    numbers = range(len(rows))",
        "    alone = subject.answers(rows)\n    numbers = range(len(rows))",
        ("audit/test_zoo.py", "-k cheat"),
    ),
    Mutant(
        "shift-not-shifted",
        "audit",
        "the shift check compares a text with itself",
        "scores_at(part, q, k, first + shift, subject.causal)",
        "scores_at(part, q, k, first, subject.causal)",
        ("audit/test_zoo.py", "-k cheat"),
    ),
    Mutant(
        "weights-not-perturbed",
        "audit",
        "a part is audited with its first weights, behind which a gate may hide",
        "        perturb_weights(network, plan.seed)",
        "        pass",
        ("audit/test_zoo.py", "-k gate"),
    ),
    Mutant(
        "frozen-perturbed",
        "audit",
        "tables that nothing learns are moved before an audit",
        "not weight.is_floating_point() or not weight.requires_grad",
        "not weight.is_floating_point()",
        ("audit/test_own_models.py", "-k frozen"),
    ),
    Mutant(
        "maps-with-mask-only",
        "audit",
        "maps are looked at with a mask only",
        "in ((ids, lengths), (full, None))",
        "in ((ids, lengths), (full, torch.full((len(full),), full.shape[1])))",
        ("audit/test_own_models.py", "-k UnmaskedMaps"),
    ),
    Mutant(
        "swallowed-mask-passes",
        "audit",
        "a mask that is taken among **kwargs and ignored passes",
        "return more_than(change, subject.tolerance, f",
        "return more_than(1.0, subject.tolerance, f",
        ("audit/test_own_models.py", "-k SwallowedMask"),
    ),
    Mutant(
        "repeat-compares-itself",
        "audit",
        "a fresh process is compared with itself",
        'first == second, "Training in two',
        'first == first, "Training in two',
        ("audit/test_zoo.py", "-k fresh_ones"),
    ),
    Mutant(
        "one-hash-seed",
        "audit",
        "the fresh processes of an audit share a hash seed",
        '"PYTHONHASHSEED": str(number)',
        '"PYTHONHASHSEED": "0"',
        ("audit/test_zoo.py", "-k hashes"),
    ),
    Mutant(
        "fresh-without-plugins",
        "audit",
        "the fresh processes of an audit know no plugins",
        'others = {name: kind for name, kind in kinds.items() if not kind.__module__.startswith("fairtrial.")}',
        "others = {}",
        ("audit/test_audit_command.py", "-k plugin"),
    ),
    Mutant(
        "fresh-in-working-folder",
        "audit",
        "the fresh processes of an audit import from the working folder",
        '[sys.executable, "-P", "-c", FRESH, request]',
        '[sys.executable, "-c", FRESH, request]',
        ("audit/test_audit_command.py", "-k plugin"),
    ),
    Mutant(
        "amber-hides-red",
        "audit",
        "an amber finding decides where there is a red one, too",
        'for level in ("red", "amber") if',
        'for level in ("amber", "red") if',
        ("audit/test_finding.py", "-k worst"),
    ),
)

RECORD = (
    Mutant(
        "fsync-skipped",
        "record",
        "a file is moved into place before it is on the disk",
        "file.flush()\n                os.fsync(file.fileno())",
        "file.flush()",
        ("record/test_disk.py",),
    ),
    Mutant(
        "not-atomic",
        "record",
        "a file is written in place instead of beside it",
        "neighbour = path.with_name(path.name + beside)",
        "neighbour = path",
        ("record/test_disk.py",),
    ),
    Mutant(
        "lock-not-taken",
        "record",
        "two processes may write one record",
        "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("record/test_disk.py", "-k lock"),
    ),
    Mutant(
        "held-record-tidied",
        "record",
        "files that another process is writing are swept away",
        "            with suppress(Busy), self.hold():\n                self.drop_leftovers()",
        "            self.drop_leftovers()",
        ("record/test_record.py", "-k kill_left"),
    ),
    Mutant(
        "killed-draft-stays",
        "record",
        "a file that a killed process had not moved to its place stays in a finished record",
        'lock_beside(self.folder), *self.folder.glob("*.tmp")]',
        "lock_beside(self.folder)]",
        ("record/test_record.py", "-k kill_left"),
    ),
    Mutant(
        "killed-lock-stays",
        "record",
        "the lock of a killed preparation stays beside the record",
        'found = [self.folder / "checkpoints", lock_beside(self.folder), ',
        'found = [self.folder / "checkpoints", ',
        ("record/test_record.py", "-k kill_left"),
    ),
    Mutant(
        "study-not-tidied",
        "study",
        "checkpoints of a trial that was killed in its last moment stay in a study",
        "            record.tidy()  # its process",
        "            pass  # its process",
        ("study/test_study_run.py", "-k not_run_again"),
    ),
    Mutant(
        "torn-line-kept",
        "record",
        "a torn last line is read",
        'whole = path.read_bytes().split(b"\\n")[:-1]',
        'whole = [line for line in path.read_bytes().split(b"\\n") if line]',
        ("record/test_record.py", "-k torn"),
    ),
    Mutant(
        "grows-from-torn-line",
        "record",
        "a new line grows from a torn one",
        "size = _drop_torn_line(handle)",
        "size = os.fstat(handle).st_size",
        ("record/test_disk.py", "-k torn"),
    ),
    Mutant(
        "links-followed",
        "record",
        "a record may link out of itself",
        "if not is_plain(path):",
        "if not path.exists():",
        ("record/test_stranger.py",),
    ),
    Mutant(
        "weights-unchecked",
        "record",
        "damaged weights are loaded",
        "if name in kept and sha256_of(path) != kept[name]:",
        "if name in kept and name != 'model.safetensors' and sha256_of(path) != kept[name]:",
        ("analysis/test_predict.py", "-k flipped"),
    ),
    Mutant(
        "files-unchecked",
        "record",
        "files that were edited after the trial are read",
        "if name in kept and sha256_of(path) != kept[name]:",
        "if name == 'model.safetensors' and sha256_of(path) != kept[name]:",
        ("record/test_proof.py",),
    ),
    Mutant(
        "documents-unchecked",
        "record",
        "a document whose checksum differs is read",
        "if version == FORMAT and kept != digest(found) and not edited:",
        "if version == FORMAT and kept is None:",
        ("record/test_proof.py",),
    ),
    Mutant(
        "changes-unsettled",
        "record",
        "a trial is resumed after its files were edited",
        "if not names:\n            return",
        "if True:\n            return",
        ("record/test_proof.py",),
    ),
    Mutant(
        "metrics-unproven",
        "study",
        "outcomes that do not give a record's metrics are judged",
        "if told is None or not math.isclose(told, value, rel_tol=1e-9):",
        "if told is None:",
        ("record/test_proof.py",),
    ),
    Mutant(
        "plugin-change",
        "record",
        "a trial is resumed with a changed plugin",
        "if digest not in {there for _, there in given} and file in dict(given):",
        "if digest in {there for _, there in given} and file not in dict(given):",
        ("parts/test_plugins.py", "-k edited"),
    ),
    Mutant(
        "data-change",
        "record",
        "a trial is resumed on changed data",
        'if corpus.files != trial["data"]:',
        'if corpus.files.keys() != trial["data"].keys():',
        ("trial/test_trial.py", "-k changed_data"),
    ),
    Mutant(
        "environment-change",
        "record",
        "a trial is resumed with another torch or thread count",
        "if now[name] != then[name]]",
        "if name not in then]",
        ("trial/test_trial.py", "-k thread_count"),
    ),
    Mutant(
        "fingerprint",
        "recipe",
        "recipes that differ in training have one fingerprint",
        "hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]",
        'hashlib.sha256(json.dumps(plain["shape"], sort_keys=True).encode()).hexdigest()[:16]',
        ("recipe/test_recipe_file.py", "-k fingerprint"),
    ),
    Mutant(
        "seed-streams",
        "recipe",
        "all uses of one seed draw the same numbers",
        "for word in (seed, *use)",
        "for word in (seed, *use[:1])",
        ("recipe/test_names_streams.py",),
    ),
    Mutant(
        "old-names",
        "record",
        "metrics of records of version 0.1 are not found under their present names",
        "OLD_KEYS.get(name, name)",
        "name",
        ("record/test_record.py", "-k version_0_1"),
    ),
)

STUDY = (
    Mutant(
        "seeds-from-ignored",
        "study",
        "a variant with draws of its own shares the study's seeds",
        "if variant.seeds_from is None:\n            return self.seeds",
        "if variant.name:\n            return self.seeds",
        ("study/test_study_file.py",),
    ),
    Mutant(
        "seeds-differ",
        "study",
        "variants are run in different orders of their seeds",
        "seed = self.study.seeds_of(variant)[index]",
        "seed = self.study.seeds_of(variant)[index - len(variant.name)]",
        ("study/test_study_run.py", "-k whole_pairs"),
    ),
    Mutant(
        "other-items",
        "study",
        "variants that are tested on different items are compared",
        '"presidents", "test", "split_seed", "text_column"',
        '"presidents", "test", "text_column"',
        ("study/test_study_file.py",),
    ),
    Mutant(
        "stale-record",
        "study",
        "a record of another recipe is taken for the study's own",
        '"another recipe": mark not in marks or facts["seed"] != trial.seed,',
        '"another recipe": facts["seed"] != trial.seed,',
        ("study/test_study_run.py", "-k other_data"),
    ),
    Mutant(
        "stale-data",
        "study",
        "a record on other data is taken for the study's own",
        '"other data": facts["data"] != plan.eval_sets[trial.task].files,',
        '"other data": not facts["data"],',
        ("study/test_study_run.py", "-k other_data"),
    ),
    Mutant(
        "failed-trial-forgotten",
        "study",
        "a trial that failed is neither listed nor counted as failed",
        "append_line(self.path / name, json.dumps(row, ensure_ascii=False))",
        "json.dumps(row, ensure_ascii=False)",
        ("study/test_study_run.py", "-k not_counted"),
    ),
    Mutant(
        "unfinished-trial-counted",
        "study",
        "a trial that was stopped counts as finished",
        "return record if record is not None and record.complete else None",
        "return record",
        ("study/test_study_run.py", "-k not_counted"),
    ),
    Mutant(
        "failed-trial-tried-again",
        "study",
        "a trial that failed is run again without being asked for",
        "found = [trial for trial in left if trial.folder not in failed]",
        "found = left",
        ("study/test_study_run.py", "-k not_counted"),
    ),
    Mutant(
        "search-reads-test",
        "study",
        "tries of a search are scored on the test sets",
        "replace(recipe.scoring, tests=False, watch_test=False)",
        "replace(recipe.scoring, watch_test=False)",
        ("study/test_search.py", "-k validation"),
    ),
    Mutant(
        "search-worst",
        "study",
        "a search chooses the worst try",
        'better = max if METRIC[task] == "accuracy" else min',
        'better = min if METRIC[task] == "accuracy" else max',
        ("study/test_search.py", "-k validation"),
    ),
    Mutant(
        "copies-of-one-seed",
        "study",
        "copies are looked for in the share that one seed trains on",
        "data=replace(recipe.data, train_share=1.0)",
        "data=replace(recipe.data)",
        ("study/test_study_run.py", "-k copies"),
    ),
    Mutant(
        "budget-without-search",
        "study",
        "a budget forgets the time of the search",
        "options.most_seeds, searching, spent)",
        "options.most_seeds, 0.0, spent)",
        ("study/test_budget.py", "-k search"),
    ),
    Mutant(
        "neighbours-independent",
        "study",
        "sentences of a running text are judged as independent items",
        "    if ordered:\n        return contiguous_blocks",
        "    if not ordered:\n        return contiguous_blocks",
        ("study/test_ground.py",),
    ),
    Mutant(
        "untuned-is-tuned",
        "study",
        "the untuned verdict is given on tuned trials",
        "{variant.name: {} for variant in study.variants if variant.twin == UNTUNED}",
        "{}",
        ("study/test_match.py", "-k side_by_side"),
    ),
    Mutant(
        "match-upside-down",
        "study",
        "a variant that costs more is trained for longer",
        'max(1, round(target / planned(facts | {"steps": 1}, budget)))',
        'max(1, round(facts["steps"] * planned(facts, budget) / target))',
        ("study/test_match.py", "-k by_steps"),
    ),
    Mutant(
        "match-after-is-before",
        "study",
        "what a matched variant costs is told of the unmatched one",
        'row["after"] = spent(plan, task, twin) / base',
        'row["after"] = spent(plan, task, name) / base',
        ("study/test_match.py", "-k judged_at"),
    ),
    Mutant(
        "match-wrong-way",
        "study",
        "a variant with too many parameters is given more",
        "hidden = first + round((target - count) / each)",
        "hidden = first - round((target - count) / each)",
        ("study/test_match.py", "-k judged_at"),
    ),
)

ENGINES = (
    Mutant(
        "mistake-not-told",
        "engines",
        "a user's mistake is told as a crash",
        "return JobResult(job, error=what, mistake=True, disk=",
        "return JobResult(job, error=what, disk=",
        ("engines/test_processes.py", "-k mistake"),
    ),
    Mutant(
        "stop-kills-trials",
        "engines",
        "a stopped trial is killed before it has saved what it has",
        'if each.job.kind != "trial" and each.result is None:',
        "if each.result is None:",
        ("engines/test_processes.py", "-k asked_to_stop"),
    ),
    Mutant(
        "crash-is-silent",
        "engines",
        "a process that was killed is told as one without an answer",
        "if code is not None and code < 0:",
        "if code is None:",
        ("engines/test_processes.py", "-k whatever"),
    ),
    Mutant(
        "orphan-within-a-step",
        "engines",
        "a process whose caller was killed goes on for as long as its step takes",
        "while os.getppid() == parent and not connection.wait([caller.sentinel], WATCH_SECONDS):",
        "while os.getppid() == parent and not connection.wait([], WATCH_SECONDS):",
        ("engines/test_processes.py", "-k no_process_is_left"),
    ),
    Mutant(
        "spawned-imports-from-here",
        "engines",
        "where nothing can be forked, a new Python imports from the working folder",
        '"MKL_NUM_THREADS", "PYTHONSAFEPATH")',
        '"MKL_NUM_THREADS")',
        ("engines/test_processes.py", "-k can_be_forked"),
    ),
    Mutant(
        "windows-line-ends",
        "record",
        "Windows writes other line ends into a log, whose checksum is then another",
        "os.O_CREAT | binary",
        "os.O_CREAT",
        ("record/test_windows_disk.py", "-k same_bytes"),
    ),
    Mutant(
        "windows-lock-removed-while-open",
        "record",
        "a lock's file is removed while it is open, which Windows refuses",
        "if not WINDOWS:  # once it is free",
        "if True:  # once it is free",
        ("record/test_windows_disk.py", "-k same_bytes"),
    ),
    Mutant(
        "windows-moved-onto-a-folder",
        "record",
        "a record is moved onto an empty folder, which Windows refuses",
        "if WINDOWS and folder.is_dir():",
        "if False:",
        ("record/test_windows_disk.py", "-k same_bytes"),
    ),
    Mutant(
        "windows-impatient",
        "record",
        "a file that somebody reads for a moment is not replaced",
        "(PATIENCE_SECONDS if WINDOWS else 0.0)",
        "0.0",
        ("record/test_windows_disk.py", "-k closed"),
    ),
    Mutant(
        "drive-is-a-file",
        "recipe",
        "C:\\\\my.py:build is taken for a file C",
        "drive = text[:2] if",
        'drive = "" if',
        ("trial/test_own_model.py",),
    ),
    Mutant(
        "devices-are-folders",
        "study",
        "a variant is called as a device of Windows",
        " or DEVICE.fullmatch(name)",
        "",
        ("study/test_study_file.py", "-k mistakes"),
    ),
    Mutant(
        "files-in-the-consoles-letters",
        "cli",
        "a redirected table lacks the characters that the console lacks",
        'stream.encoding if shown else "utf-8"',
        "stream.encoding",
        ("cli/test_console.py", "-k file"),
    ),
    Mutant(
        "orphan-server",
        "engines",
        "a fork server whose caller was killed goes on loading",
        "kill_at_parents_end()\nos",
        "os",
        ("engines/test_processes.py", "-k is_loading"),
    ),
    Mutant(
        "waits-for-torch",
        "engines",
        "a study that is stopped while the fork server loads waits for it",
        "            end_fork_server()\n",
        "",
        ("engines/test_processes.py", "-k is_loading"),
    ),
    Mutant(
        "killed-is-final",
        "engines",
        "a trial whose process was killed is not run once more",
        "if each.result.error.startswith(KILLED) and not each.again",
        "if each.result.error.startswith(KILLED) and each.again",
        ("engines/test_processes.py", "-k killed_process"),
    ),
    Mutant(
        "fork-server-path",
        "engines",
        "the fork server imports from the working folder",
        '"MKL_NUM_THREADS", "PYTHONSAFEPATH")',
        '"MKL_NUM_THREADS")',
        ("cli/test_working_folder.py", "-k no_command"),
    ),
    Mutant(
        "working-folder-first",
        "cli",
        "python -m fairtrial imports from the working folder",
        "    del sys.path[0]",
        "    pass",
        ("cli/test_working_folder.py", "-k python_m"),
    ),
)

BASELINES = (
    Mutant(
        "kneser-ney-discount",
        "baselines",
        "the discount of runs seen once is too small",
        "1 - 2 * share * twos / ones",
        "1 - share * twos / ones",
        ("baselines/test_kneser_ney.py",),
    ),
    Mutant(
        "kneser-ney-interpolation",
        "baselines",
        "a run that was seen gets nothing of the lower order",
        "share + level.rest[at] * found[reach]",
        "np.where(counted, share, level.rest[at] * found[reach])",
        ("baselines/test_kneser_ney.py",),
    ),
    Mutant(
        "kneser-ney-continuation",
        "baselines",
        "lower orders count occurrences instead of contexts",
        "if length < order:",
        "if length < 0:",
        ("baselines/test_kneser_ney.py",),
    ),
    Mutant(
        "add-one",
        "baselines",
        "unigram naive Bayes adds a tenth instead of one",
        "words=1, alpha=1.0",
        "words=1, alpha=0.1",
        ("baselines/test_classifiers.py",),
    ),
    Mutant(
        "majority-share",
        "baselines",
        "the majority baseline adds two to every count instead of one",
        "np.bincount(labels, minlength=classes) + 1.0",
        "np.bincount(labels, minlength=classes) + 2.0",
        ("baselines/test_classifiers.py",),
    ),
    Mutant(
        "baseline-clean-subset",
        "baselines",
        "clean and contaminated items of baselines are swapped",
        '"clean": status[name] == 0, "contaminated": status[name] > 0',
        '"clean": status[name] > 0, "contaminated": status[name] == 0',
        ("baselines/test_baseline_outcomes.py",),
    ),
    Mutant(
        "ensemble-weights",
        "baselines",
        "expectation maximisation norms over items instead of models",
        "better = (shares / shares.sum(0)).mean(1)",
        "better = (shares / shares.sum(1, keepdims=True)).mean(1)",
        ("baselines/test_ensemble.py", "-k grid"),
    ),
)

ANALYSIS = (
    Mutant(
        "maps-of-other-layer",
        "analysis",
        "attention maps are given in the reverse order of layers",
        "for layer in range(len(network.body.blocks))]",
        "for layer in reversed(range(len(network.body.blocks)))]",
        ("analysis/test_maps.py",),
    ),
    Mutant(
        "ablated-layer",
        "analysis",
        "a head of the first layer is switched off whatever was asked",
        "attention, parts = network.body.blocks[layer].attention",
        "attention, parts = network.body.blocks[0].attention",
        ("analysis/test_ablation.py",),
    ),
    Mutant(
        "ablated-head",
        "analysis",
        "always the first head is switched off",
        "with head_off(task.network, layer, head):",
        "with head_off(task.network, layer, 0):",
        ("analysis/test_ablation.py",),
    ),
    Mutant(
        "flops-of-a-step",
        "analysis",
        "a step costs its forward pass twice",
        "(total + backward) * rows_in_step)",
        "2 * total * rows_in_step)",
        ("analysis/test_ledger.py",),
    ),
    Mutant(
        "flops-factor",
        "analysis",
        "a multiplication and an addition count as one in the feed-forward layers",
        '"feed-forward": (2, 2, seen,',
        '"feed-forward": (2, seen,',
        ("analysis/test_ledger.py",),
    ),
    Mutant(
        "parameters-biases",
        "analysis",
        "biases are counted as the reports do not",
        "if len(sizes) > 1) if counted else 0",
        "if len(sizes) > 0) if counted else 0",
        ("analysis/test_ledger.py",),
    ),
    Mutant(
        "top-p-cut",
        "analysis",
        "the token that reaches top-p is cut",
        "order[before >= sampling.top_p]",
        "order[before + found[order] >= sampling.top_p]",
        ("analysis/test_generate.py", "-k shares"),
    ),
    Mutant(
        "repetition-penalty",
        "analysis",
        "the penalty makes unlikely tokens likelier",
        "np.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)",
        "old / sampling.repetition_penalty",
        ("analysis/test_generate.py", "-k shares"),
    ),
    Mutant(
        "generation-prompt",
        "analysis",
        "only the last token of the prompt is read",
        "torch.tensor([sequence[cache.length :]])",
        "torch.tensor([sequence[-1:]])",
        ("analysis/test_generate.py", "-k prefix"),
    ),
    Mutant(
        "calibration-bins",
        "analysis",
        "a confidence at the border of two bins falls into the upper",
        "np.ceil(confidence * bins).astype(int) - 1",
        "np.floor(confidence * bins).astype(int)",
        ("analysis/test_errors.py", "-k calibration or bin"),
    ),
    Mutant(
        "confident-mistakes",
        "analysis",
        "the least confident mistakes come first",
        "np.argsort(-guess_log_odds(log_p)[wrong]",
        "np.argsort(guess_log_odds(log_p)[wrong]",
        ("analysis/test_errors.py", "-k surest"),
    ),
    Mutant(
        "surprisal-rank",
        "analysis",
        "the model's best guess has rank 0",
        "rank = (log_p > own).sum(1, keepdim=True) + 1",
        "rank = (log_p > own).sum(1, keepdim=True)",
        ("analysis/test_surprise.py",),
    ),
)

REPORT = (
    Mutant(
        "markdown-bar",
        "report",
        "a bar in a name ends its cell",
        "*_|<>~]",
        "*_<>~]",
        ("report/test_tables.py", "-k markdown"),
    ),
    Mutant(
        "latex-escape",
        "report",
        "characters that LaTeX reserves are written as they are",
        "LATEX.get(letter, letter)",
        "letter",
        ("report/test_tables.py", "-k latex"),
    ),
    Mutant(
        "terminal-commands",
        "report",
        "control characters reach the terminal",
        r"[\x00-\x1f\x7f-\x9f]",
        r"[\x7f-\x9f]",
        ("report/test_tables.py", "-k terminal"),
    ),
    Mutant(
        "listed-perplexities",
        "report",
        "a listing shows perplexities of different vocabularies beside each other",
        "tuple(either[differ] for either in rows)",
        "tuple(either[False] for either in rows)",
        ("study/test_same_question.py", "-k hiding_more_words"),
    ),
    Mutant(
        "strides-not-told",
        "study",
        "a study does not know that its scores are in strides",
        "contexts=strided(next(iter(records[baseline].values()))),",
        "contexts={},",
        ("study/test_same_question.py", "-k in_strides"),
    ),
    Mutant(
        "curve-as-candidate",
        "cli",
        "a point of a curve looks like a candidate for the chosen weights",
        '" (curve only)"',
        '""',
        ("cli/test_screen.py", "-k say_it_all"),
    ),
    Mutant(
        "headings-before-cells",
        "report",
        "columns give their room to headings, so that intervals break",
        "for wanted in (of_cells, natural):",
        "for wanted in (natural, of_cells):",
        ("report/test_result_words.py", "-k fits_the_width"),
    ),
    Mutant(
        "interval-digits",
        "report",
        "one digit of an interval is lost",
        "kept = power - 1 if",
        "kept = power if",
        ("report/test_tables.py", "-k interval"),
    ),
    Mutant(
        "stamp-lost",
        "report",
        "a failed audit is not told beside a name in CSV",
        "writer.writerows([cell.stamped if",
        "writer.writerows([cell.text if",
        ("report/test_tables.py", "-k other_formats"),
    ),
    Mutant(
        "page-escape",
        "report",
        "names are written into a page as markup",
        "autoescape=True",
        "autoescape=False",
        ("report/test_page.py", "-k hostile"),
    ),
    Mutant(
        "chart-upside-down",
        "report",
        "higher values are drawn lower",
        "(1 - (value - self.low) /",
        "((value - self.low) /",
        ("report/test_chart.py", "-k higher"),
    ),
    Mutant(
        "styles-meet",
        "report",
        "the style of one output in a notebook holds for the others, too",
        'own = f"fairtrial-{sha256(style.encode()).hexdigest()[:8]}"',
        'own = "fairtrial"',
        ("api/test_results.py", "-k reach_another"),
    ),
)

PRETRAINED = (
    Mutant(
        "weights-transposed",
        "pretrained",
        "queries, keys and values are transposed",
        "= torch.cat(qkv)",
        "= torch.cat([each.t() for each in qkv])",
        ("pretrained/test_families.py",),
    ),
    Mutant(
        "norm-epsilon",
        "pretrained",
        "the checkpoint's layer norm epsilon is ignored",
        'norm_epsilon=float(config.get("layer_norm_eps", 1e-12))',
        "norm_epsilon=1e-5",
        ("pretrained/test_families.py",),
    ),
    Mutant(
        "segment-vectors",
        "pretrained",
        "the vector of the second segment is added to the positions",
        'take("embeddings.token_type_embeddings.weight")[0]',
        'take("embeddings.token_type_embeddings.weight")[-1]',
        ("pretrained/test_families.py",),
    ),
    Mutant(
        "final-token",
        "pretrained",
        "a text that is cut loses its closing mark",
        "return [*ids[: length - 1], ids[-1]]",
        "return list(ids[:length])",
        ("pretrained/test_families.py", "-k long_texts"),
    ),
    Mutant(
        "export-positions",
        "pretrained",
        "exported positions are not behind the padding's row",
        "torch.cat((before, positions))",
        "torch.cat((positions, before))",
        ("pretrained/test_export.py",),
    ),
)

API = (
    Mutant(
        "import-loads-numpy",
        "api",
        "`import fairtrial` loads numpy",
        "from importlib import import_module\nfrom types import ModuleType",
        "from importlib import import_module\nfrom types import ModuleType\n\nimport numpy",
        ("api/test_names.py", "-k neither_torch"),
    ),
    Mutant(
        "room-hides-function",
        "api",
        "importing the room of studies hides the public function",
        "if not (name in PUBLIC and isinstance(value, ModuleType)):",
        "if name not in ():",
        ("api/test_names.py", "-k does_not_hide"),
    ),
    Mutant(
        "threads-share-rng",
        "api",
        "networks that are built in several threads draw each other's numbers",
        "with _turns, torch.random.fork_rng(devices=[]):",
        "with torch.random.fork_rng(devices=[]):",
        ("api/test_threads.py", "-k draw_their_own"),
    ),
    Mutant(
        "thread-count-left",
        "api",
        "torch keeps the thread count of a training that ended in another thread",
        "before = _before if _active and not _held.depth else own",
        "before = own",
        ("api/test_threads.py", "-k number_of_threads"),
    ),
    Mutant(
        "notebook-part-not-kept",
        "api",
        "a record does not keep the source of a notebook's part",
        'write_text(beside / "parts" / name, source)',
        'write_text(beside / "parts" / name, "")',
        ("api/test_own_parts.py", "-k keeps_the_source"),
    ),
    Mutant(
        "notebook-constants-lost",
        "api",
        "the source of a notebook's part lacks what it uses of the notebook",
        "if used in scope and used != own:",
        "if used in scope and used != own and callable(scope[used]):",
        ("api/test_own_parts.py", "-k uses_and_nothing_else"),
    ),
    Mutant(
        "stale-cell",
        "api",
        "the part of a cell that was run again counts as the old one",
        "            del _loaded[old]\n",
        "            pass\n",
        ("api/test_own_parts.py", "-k run_again"),
    ),
    Mutant(
        "callers-stop-ignored",
        "api",
        "a training does not ask the caller whether to stop",
        "return stopping() if stop is None else nullcontext(stop)",
        "return stopping()",
        ("api/test_own_parts.py", "-k keeps_the_source"),
    ),
    Mutant(
        "reuse-believes-data",
        "api",
        "a record is reused although its data have changed",
        "        found.splits  # noqa: B018",
        "        found.seed  # noqa: B018",
        ("api/test_given.py", "-k run_again"),
    ),
    Mutant(
        "given-split-lost",
        "api",
        "all data of a dict are trained on",
        'yield {"split": str(name), **',
        'yield {"split": "train", **',
        ("api/test_given.py", "-k several_test_sets"),
    ),
    Mutant(
        "given-class-numbers",
        "api",
        "classes of a Dataset are given by number",
        "        yield {**row, **named}",
        "        yield {**named, **row}",
        ("api/test_given.py", "-k names_of_its_classes"),
    ),
    Mutant(
        "compare-swapped",
        "api",
        "ft.compare judges theirs against ours",
        "judge_arrays(ours, theirs, groups, weights, metric",
        "judge_arrays(theirs, ours, groups, weights, metric",
        ("api/test_compare.py", "-k direction"),
    ),
    Mutant(
        "power-without-pilot",
        "api",
        "ft.power forgets the pilot's variances",
        "task, shares = shares_of_pilot(rows)",
        "task, _ = shares_of_pilot(rows)",
        ("api/test_compare.py", "-k pilot"),
    ),
    Mutant(
        "amber-passes",
        "api",
        "an audit with amber findings has passed",
        'return self.level == "pass"',
        'return self.level != "red"',
        ("api/test_results.py", "-k has_passed"),
    ),
)


SHOWN = (
    Mutant(
        "notebook-markup",
        "shown",
        "what a user wrote becomes markup in a notebook",
        "{escape(plain(piece))}</span>",
        "{plain(piece)}</span>",
        ("api/test_results.py", "-k cannot_become_markup"),
    ),
    Mutant(
        "notebook-style-lost",
        "shown",
        "a result in a notebook loses the style of its classes",
        "if classes <= used)",
        "if not classes)",
        ("api/test_results.py", "-k first_screen"),
    ),
    Mutant(
        "comparison-unit",
        "shown",
        "a comparison's table tells a log ratio where its sentence tells per cent",
        "return verdict_tables.shown_difference(self.facts, self.facts)",
        "return self.difference, self.low, self.high",
        ("api/test_names.py", "-k Comparison"),
    ),
    Mutant(
        "records-score-lost",
        "shown",
        "the frame of many records has no scores",
        'facts |= {f"{name} {metric}": score[metric] for metric in shown}',
        'facts |= dict.fromkeys((f"{name} {metric}" for metric in shown), None)',
        ("api/test_names.py", "-k Records"),
    ),
    Mutant(
        "python-default-drifts",
        "shown",
        "a part is plotted with another length in Python than by the command",
        "heads: int = 4, length: int = 18, encoder: bool = False",
        "heads: int = 4, length: int = 24, encoder: bool = False",
        ("api/test_same_folder.py", "-k every_option"),
    ),
)
APPS = (
    Mutant(
        "zoo-timeout-kept",
        "apps",
        "a class of the zoo that took too long is never tried again",
        'or not facts["lasting"]',
        "or False",
        ("apps/test_model_zoo.py", "-k too_long"),
    ),
    Mutant(
        "zoo-fail-hidden",
        "apps",
        "in a column of the zoo a check that was not asked hides one that failed",
        "for each in (FAIL, NOT_ASKED) if each in found",
        "for each in (NOT_ASKED, FAIL) if each in found",
        ("apps/test_model_zoo.py", "-k page_shows"),
    ),
    Mutant(
        "puzzle-scale",
        "apps",
        "scores are divided by the width instead of its square root",
        "factor = 1 / math.sqrt(keys.shape[1]) if scaled else 1.0",
        "factor = 1 / keys.shape[1] if scaled else 1.0",
        ("apps/test_possible.py", "-k own_attention"),
    ),
    Mutant(
        "replaced-key-score",
        "apps",
        "the new key's score ignores what is left to the others",
        "return log_sum(others) + math.log(share / (1 - share))",
        "return log_sum(others) + math.log(share)",
        ("apps/test_replace_key.py",),
    ),
    Mutant(
        "earliest-match",
        "apps",
        "a head is expected to look at the earliest match instead of the latest",
        "for key in range(first, 0, -1):",
        "for key in range(1, first + 1):",
        ("apps/test_heads.py",),
    ),
    Mutant(
        "misplaced-twice",
        "apps",
        "attention in the wrong place is counted twice",
        "float(np.abs(weights - target).sum() / 2)",
        "float(np.abs(weights - target).sum())",
        ("apps/test_best.py",),
    ),
)

OWN_RESULTS = (
    Mutant(
        "seeds-of-evaluation-as-training",
        "own_results",
        "one checkpoint, evaluated five times, counts as five trainings",
        "if len(same) == len(variants):",
        "if not same:",
        ("api/test_own_results.py", "-k checkpoints_are_judged"),
    ),
    Mutant(
        "checkpoints-as-variants",
        "own_results",
        "a verdict on two checkpoints reads as one on two ways to train",
        'of = "checkpoint_" * comparison.checkpoints',
        'of = ""',
        ("api/test_own_results.py", "-k checkpoints_are_judged"),
    ),
    Mutant(
        "results-with-missing-items",
        "own_results",
        "variants are compared on different items",
        "if lost := [item for item in items if item not in found]:",
        "if lost := [item for item in items if False]:",
        ("api/test_own_results.py", "-k missing_ones_are_named"),
    ),
    Mutant(
        "first-of-several-columns",
        "own_results",
        "of two columns that could be the item the first is taken",
        "if len(there) > 1:",
        "if False:",
        ("api/test_own_results.py", "-k doubt_is_refused"),
    ),
    Mutant(
        "items-of-one-name",
        "own_results",
        "two documents of one number count as the same item",
        'for what in ("label", "group", "content"):',
        'for what in ("label", "group"):',
        ("api/test_own_results.py", "-k harness_with_the_seed"),
    ),
    Mutant(
        "metrics-corrected-apart",
        "own_results",
        "every metric of a file is a family of its own",
        "families = [posed] if one_family else [[each] for each in posed]",
        "families = [[each] for each in posed]",
        ("api/test_own_results.py", "-k one_family"),
    ),
    Mutant(
        "perplexities-of-other-tokens",
        "own_results",
        "perplexities over different numbers of tokens are compared",
        'and not np.array_equal(one["weight"], other["weight"]):',
        "and False:",
        ("api/test_own_results.py", "-k documents_weigh"),
    ),
)

VERIFICATION = (
    Mutant(
        "verify-without-training",
        "verification",
        "the losses of the repeated training are not compared",
        "wrong = first_difference(own, stored, shared=bool(other))\n",
        'wrong = ""\n',
        ("record/test_verify.py", "-k another_seed"),
    ),
    Mutant(
        "verify-without-weights",
        "verification",
        "stored weights are not compared with those of the repeated training",
        "wrong = [name for name, tensor in own.items() if not same_bits(tensor, stored[name])]",
        "wrong: list[str] = []",
        ("record/test_verify.py", "-k edited_weights"),
    ),
    Mutant(
        "verify-own-weights",
        "verification",
        "scores are those of the repeated training, not of the stored weights",
        "    put_weights(prepared.task.network, stored)\n",
        "",
        ("record/test_verify.py", "-k test_an_honest_record"),
    ),
    Mutant(
        "verify-without-outcomes",
        "verification",
        "outcomes of single items are not compared",
        "unequal = sorted(name for name in {*outcomes, *stored} if not same_array(",
        "unequal = sorted(name for name in {*outcomes, *stored} if False and not same_array(",
        ("record/test_verify.py", "-k edited_with_their_scores"),
    ),
    Mutant(
        "verify-without-metrics",
        "verification",
        "a result's metrics are not compared",
        "wrong = first_difference(own, claimed, shared=shared)\n",
        'wrong = ""\n',
        ("record/test_verify.py", "-k edited_result"),
    ),
    Mutant(
        "verify-runs-what-it-finds",
        "verification",
        "a record's parts need not be named",
        "require_plugins(record)  # a part that is not built in runs only where it is named",
        "pass",
        ("record/test_verify.py", "-k not_guessed_at"),
    ),
    Mutant(
        "verify-any-verdict",
        "verification",
        "a study's verdict is not judged again",
        "if wrong := first_difference({name: facts[name] for name in JUDGED}, kept, 1e-9):",
        'if wrong := "":',
        ("record/test_verify.py", "-k judged_again"),
    ),
)

OWN_MODELS = (
    Mutant(
        "mask-of-ones-passes", "own-models", "K1: a mask of ones is not compared",
        "        worst = max(worst, largest_change([subject.log_p(ids)], [masked]))\n", "",
        ("audit/test_own_models.py", "-k OnesMatter"),
    ),
    Mutant(
        "positions-beside-padding", "own-models", "K1p: position ids beside padding are not compared",
        "    worst = largest_change(alone, own)\n    bad = f\"Position", "    worst = 0.0\n    bad = f\"Position",
        ("audit/test_own_models.py", "-k PositionsMistaken"),
    ),
    Mutant(
        "left-alone-passes", "own-models", "K2: a batch of one is not padded on the left",
        'found["a batch of one"] = max(found["a batch of one"], largest_change([answer], changed))', "pass",
        ("audit/test_own_models.py", "-k UnmaskedAlone"),
    ),
    Mutant(
        "cache-mask-forgotten", "own-models", "C2: the mask is never given, so that an honest cache fails",
        "given = mask[:, : seen + piece.shape[1]] if often or not seen else None", "given = None",
        ("audit/test_own_models.py", "-k honest_network"),
    ),
    Mutant(
        "cache-padding-passes", "own-models", "C2: what a cache gives beside padding is not compared",
        "largest_change(alone[-size:], decoded(subject, rows[-size:], often))", "0.0",
        ("audit/test_own_models.py", "-k UnmaskedCache"),
    ),
    Mutant(
        "cache-padding-of-zeros", "own-models", "C2: padding is a token whose vector is zero",
        "filler = left_filler(subject) if subject.pad is None else subject.pad", "filler = subject.pad or 0",
        ("audit/test_own_models.py", "-k PaddingRemembered"),
    ),
    Mutant(
        "pieces-of-one", "own-models", "C1p: a cache gets one token at a time",
        "[[time // 2, 1, time - time // 2 - 1]]", "[[1] * time]",
        ("audit/test_own_models.py", "-k StepwiseCache"),
    ),
    Mutant(
        "training-mode-is-evaluation", "own-models", "T1: the copy is not in training mode",
        "self.network = copy.deepcopy(subject.network).train()", "self.network = copy.deepcopy(subject.network)",
        ("audit/test_own_models.py", "-k TrainingLeak"),
    ),
    Mutant(
        "float32-passes", "own-models", "F1: leaks in float32 are not judged",
        "if not max(found.values()) <= 1e-5 * size:", "if False:",
        ("audit/test_own_models.py", "-k SingleLeak"),
    ),
    Mutant(
        "no-autocast", "own-models", "F2: autocast is off",
        'with torch.autocast("cpu", torch.bfloat16):\n            return network(ids, lengths).float()',
        "with torch.no_grad():\n            return network(ids, lengths).float()",
        ("audit/test_own_models.py", "-k AutocastLeak"),
    ),
    Mutant(
        "device-not-asked", "own-models", "D1: the device that trains is never asked",
        'if device.type == "cpu":\n        return None', "if True:\n        return None",
        ("training/test_device.py", "-k once_more"),
    ),
    Mutant(
        "device-is-cpu", "own-models", "D1: the copy stays on the CPU",
        "copy.deepcopy(subject.network).float().to(device)", "copy.deepcopy(subject.network).float()",
        ("training/test_device.py", "-k once_more"),
    ),
    Mutant(
        "optimizer-loads-compiler", "training", "a first step imports torch's compiler",
        "make: Callable[..., Optimizer] = light(kinds[training.optimizer])",
        "make: Callable[..., Optimizer] = kinds[training.optimizer]",
        ("training/test_optimizer.py", "-k compiler"),
    ),
    Mutant(
        "checkpoint-copies", "training", "a checkpoint copies every tensor before it is written",
        "content += [raw.data] if raw.nbytes else []", "content += [raw.copy().data] if raw.nbytes else []",
        ("training/test_checkpoint_disk.py", "-k copies_nothing"),
    ),
    Mutant(
        "compiled-mixed", "study", "a study compares compiled trials with others",
        '("training", "precision"), ("training", "compile"),\n)  # fmt: skip\n\n\n@dataclass',
        '("training", "precision"),\n)  # fmt: skip\n\n\n@dataclass',
        ("training/test_compile.py", "-k compared"),
    ),
    Mutant(
        "container-ignored", "own-models", "a container's limit on memory does not count",
        'return min(free, int(told["max"])', 'return max(free, int(told["max"])',
        ("cli/test_mistakes.py", "-k container"),
    ),
    Mutant(
        "long-texts-pass", "own-models", "L1: leaks over long texts are not measured",
        "found = leaks(subject, subject.log_p, rows)", 'found = {"later words": 0.0}',
        ("audit/test_own_models.py", "-k LongLeak"),
    ),
    Mutant(
        "windows-not-crossed-pass", "own-models", "L1: windows that no text crosses pass",
        "if measured.passed and time_ <= CHUNKS * chunk:", "if False:",
        ("audit/test_own_models.py", "-k windows_that_no_text_crosses"),
    ),
    Mutant(
        "windows-not-found", "own-models", "L1: windows of a configuration are not known",
        "named = (getattr(config, name, None) for name in CHUNKS)", "named = ()",
        ("audit/test_own_models.py", "-k found_in_a_configuration"),
    ),
    Mutant(
        "out-of-time-passes", "own-models", "what an audit did not reach counts as passed",
        '        if self.verdict == OUT_OF_TIME:\n            return "amber"\n', "",
        ("audit/test_own_models.py", "-k asked_what_there_is_time_for"),
    ),
    Mutant(
        "late-checks-begin", "own-models", "checks begin although the time is over",
        "        if left <= 0:\n            raise OutOfTime\n", "        left = max(left, 1.0)\n",
        ("audit/test_own_models.py", "-k asked_what_there_is_time_for"),
    ),
    Mutant(
        "own-maps-unchecked", "own-models", "look: the maps of a user's network are not checked",
        "encoded.unknown, check_maps(weights, visible, real, network.causal),", "encoded.unknown, (),",
        ("trial/test_own_model.py", "-k look_shows"),
    ),
    Mutant(
        "own-words-padded", "own-models", "predict: words of a user's network are read in padded batches",
        "at_once = 1 if external else ROWS", "at_once = ROWS",
        ("trial/test_own_model.py", "-k words_are_attributed"),
    ),
    Mutant(
        "plugins-as-classes", "own-models", "R1: a fresh process takes a function of FlexAttention for a class",
        '"" if is_plugin(kind) else kind.__qualname__', "kind.__qualname__",
        ("audit/test_checks.py", "-k fresh_process"),
    ),
    Mutant(
        "few-calls", "own-models", "S1: a hundred calls instead of thousands",
        "while done < subject.calls and", "while done < 100 and",
        ("audit/test_own_models.py", "-k Drifting"),
    ),
    Mutant(
        "any-shape-is-logits", "own-models", "a tensor of as many axes is taken for logits",
        "            if each.shape == wanted:\n", "            if each.dim() == len(wanted):\n",
        ("model/test_external.py", "-k breaks_the_contract"),
    ),
    Mutant(
        "probabilities-are-logits", "own-models", "a network that gives probabilities is not refused",
        "if bool((logits >= 0).all()) and", "if False and",
        ("model/test_external.py", "-k breaks_the_contract"),
    ),
    Mutant(
        "left-padding-off-by-one", "own-models", "left padding is one place off",
        "    return (rows.shape[1] - lengths.to(rows.device))[:, None]",
        "    return (rows.shape[1] - lengths.to(rows.device) - 1)[:, None]",
        ("model/test_external.py", "-k x_transformers_decoder"),
    ),
    Mutant(
        "own-mask-on-the-cpu", "own-models", "masks are made on the CPU wherever the tokens are",
        "    return torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]",
        "    return torch.arange(ids.shape[1]) < lengths[:, None]",
        ("model/test_external.py", "-k where_the_tokens_are"),
    ),
    Mutant(
        "padding-has-answers", "own-models", "a loss of one's own counts padding",
        "targets = answers.masked_fill(~real, -1) if self.causal else answers", "targets = answers",
        ("model/test_external.py", "-k loss_and_an_optimizer"),
    ),
    Mutant(
        "own-optimizer-unscheduled", "own-models", "the learning rate of an optimizer of one's own is lost",
        'group["scale"] = group["lr"] / training.learning_rate', 'group["scale"] = 1.0',
        ("model/test_external.py", "-k loss_and_an_optimizer"),
    ),
    Mutant(
        "flex-heads-shared", "own-models", "a score_mod is told one head for all",
        "batch, heads = (torch.arange(size, device=scores.device) for size in scores.shape[:2])",
        "batch, heads = (0 * torch.arange(size, device=scores.device) for size in scores.shape[:2])",
        ("model/test_external.py", "-k score_mod"),
    ),
    Mutant(
        "own-dropout-unseeded", "own-models", "what a user's network drops depends on what ran before",
        'with seeded(seed_for(self.seed, "dropout", "model", step)) if self.external else nullcontext():',
        "with nullcontext():",
        ("trial/test_own_model.py", "-k own_it_resumes"),
    ),
    Mutant(
        "own-weights-unsaid", "own-models", "a verdict does not say that first weights are not shared",
        'verdict["sentences"] += [*own_weights_lines(plan), ', 'verdict["sentences"] += [',
        ("trial/test_own_model.py", "-k study_file"),
    ),
)  # fmt: skip

EXPLORE = (
    Mutant(
        "explorer-any-host", "explore", "DNS rebinding: the explorer answers under any name",
        "if len(named) != 1 or named[0] not in self.known_hosts():", "if len(named) != 1:",
        ("explore/test_guard.py", "-k names"),
    ),
    Mutant(
        "explorer-any-origin", "explore", "another site's form is answered",
        'if given.get(b"origin", "") not in self.origins():', 'if given.get(b"origin", "") == "x":',
        ("explore/test_guard.py", "-k sites"),
    ),
    Mutant(
        "explorer-no-secret", "explore", "whoever reaches the port gets in",
        "if refused is None and not self.knows(scope):", "if refused is None and False:",
        ("explore/test_guard.py", "-k token_gets"),
    ),
    Mutant(
        "explorer-follows-links", "explore", "a symlink leads out of the folder",
        "mode = path.lstat().st_mode\n            except (OSError, ValueError) as error:",
        "mode = path.stat().st_mode\n            except (OSError, ValueError) as error:",
        ("explore/test_guard.py", "-k leaves_the_folder"),
    ),
    Mutant(
        "explorer-any-body", "explore", "a body of any size is read",
        "if size > BODY_BYTES:", "if size > 1000 * BODY_BYTES:",
        ("explore/test_guard.py", "-k bodies"),
    ),
    Mutant(
        "explorer-any-data", "explore", "data anywhere on the disk are read",
        'if source == "sotu" or source in self.data:', "if True:",
        ("explore/test_guard.py", "-k elsewhere"),
    ),
    Mutant(
        "explorer-stale-work", "explore", "a fast typist waits for answers to what was typed before",
        "newest.ended.set()", "pass",
        ("explore/test_playground.py", "-k newer"),
    ),
    Mutant(
        "explorer-late-question", "explore", "a question that arrives late ends the newer one",
        "if newest.turn > ticket.turn:", "if False:",
        ("explore/test_playground.py", "-k newer_question"),
    ),
    Mutant(
        "explorer-shared-network", "explore", "a head that is off in one tab is off in the other",
        "    with model.lock:\n        with heads_off(model, off):",
        "    if True:\n        with heads_off(model, off):",
        ("explore/test_playground.py", "-k many_at_once"),
    ),
    Mutant(
        "explorer-immortal-passport", "explore", "a part that hangs is audited for ever, though nobody waits",
        "run([job], on_progress, ticket.ended.is_set)", "run([job], on_progress, lambda: False)",
        ("explore/test_views.py", "-k hangs"),
    ),
    Mutant(
        "audit-leaves-orphans", "audit", "the processes of R1 outlive a killed audit",
        "end_with_caller()\n", "\n",
        ("explore/test_views.py", "-k hangs"),
    ),
    Mutant(
        "explorer-own-statistics", "explore", "a comparison leaves out that items belong together",
        "return None if groups is None else groups[0]", "return None",
        ("explore/test_views.py", "-k verdict_says"),
    ),
)  # fmt: skip

MUTANTS = (
    *MODEL, *PARTS, *DATA, *TRAINING, *STATISTICS, *AUDIT, *RECORD, *STUDY, *ENGINES, *BASELINES, *ANALYSIS,
    *REPORT, *PRETRAINED, *API, *SHOWN, *APPS, *OWN_RESULTS, *OWN_MODELS, *EXPLORE, *VERIFICATION,
)  # fmt: skip


def problems(mutants: Sequence[Mutant]) -> Iterator[str]:
    """Why faults cannot be planted: each snippet must occur exactly once, and its tests must be there."""
    names = [mutant.name for mutant in MUTANTS]
    yield from (
        f"{name}: two faults have this name" for name in sorted({each for each in names if names.count(each) > 1})
    )
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for mutant in mutants:
        places = [path for path, text in texts.items() for _ in range(text.count(mutant.old))]
        if len(places) != 1:
            where = ", ".join(str(path.relative_to(SOURCE)) for path in places) or "nowhere"
            yield f"{mutant.name}: its snippet occurs {len(places)} times ({where}): {mutant.old!r}"
        for test in paths_of(mutant):
            if not (TESTS / test.partition("::")[0]).exists():
                yield f"{mutant.name}: there is no tests/{test}"


def paths_of(mutant: Mutant) -> list[str]:
    return [test for test in mutant.tests if not test.startswith("-k ")]


def make_copy(room: Path) -> Path:
    """src with its compiled files, which keep their meaning because copying keeps the times of files."""
    copy = room / "whole"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(copy)], check=True)
    code = "import fairtrial; print(fairtrial.__file__)"
    told = subprocess.run([sys.executable, "-c", code], env=environment(room, copy), capture_output=True, text=True)
    if not told.stdout.startswith(str(copy)):
        raise SystemExit(f"the copy of src is not what is imported: {told.stdout or told.stderr}")
    return copy


def environment(room: Path, source: Path) -> dict[str, str]:
    # hypothesis would remember a fault's examples and try them on the next one
    own = {"PYTHONPATH": str(source), "HYPOTHESIS_STORAGE_DIRECTORY": str(room / "hypothesis")}
    return os.environ | own


def plant(mutant: Mutant, source: Path) -> None:
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if mutant.old in text:
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            compile(path.read_text(encoding="utf-8"), path, "exec")  # a fault is no syntax error
            Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def try_mutant(mutant: Mutant, whole: Path) -> Outcome:
    """Plant a fault into a fresh copy and run its tests there."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"{mutant.name}-", dir=whole.parent) as room:
        source = Path(room) / "src"
        shutil.copytree(whole, source)
        plant(mutant, source)
        code, said = run_tests(mutant.tests, Path(room), source)
    found = re.search(r"^(FAILED|ERROR) tests/(.*?)(?:\[.*)?(?: - .*)?$", said, flags=re.M)
    seconds = time.monotonic() - begun
    if code == FAILED and found:
        return Outcome(True, found[2], seconds)
    if code == 0:
        return Outcome(False, "SURVIVED", seconds)
    why = {None: f"HANGS for {SECONDS} seconds", NONE_COLLECTED: "NO TEST was selected"}.get(code)
    return Outcome(False, why or f"BROKEN: pytest ended with {code}: {said.strip().splitlines()[-1:]}", seconds)


def run_tests(tests: Sequence[str], room: Path, source: Path) -> tuple[int | None, str]:
    """pytest's exit code (None: it was ended) and its output. It runs in a fork of this process, which has imported
    what takes longest to import."""
    words = [word for test in tests for word in (test.split(" ", 1) if test.startswith("-k ") else [f"tests/{test}"])]
    options = ["-x", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow", f"--basetemp={room / 'tmp'}"]
    output = room / "output.txt"
    work = (environment(room, source), source, [*options, *words], output)
    process = multiprocessing.get_context("fork").Process(target=run_pytest, args=work)
    process.start()
    process.join(SECONDS)
    if process.exitcode is None and process.pid is not None:
        os.killpg(process.pid, signal.SIGKILL)  # and the processes that its tests have begun
        process.join()
        return None, ""
    return process.exitcode, output.read_text(encoding="utf-8", errors="replace")


def run_pytest(variables: dict[str, str], source: Path, words: list[str], output: Path) -> None:
    os.setsid()
    os.chdir(ROOT)
    os.environ.update(variables)
    sys.path[0] = str(source)  # instead of tests/, the folder of this script
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = int(pytest.main(words))
    sys.stdout.flush()
    os._exit(code)  # a thread that a fault left behind does not hold it up


def control(mutants: Sequence[Mutant], whole: Path, jobs: int) -> bool:
    """Whether every selection of tests passes where nothing is broken: else a catch would show nothing."""
    chosen = list(dict.fromkeys(mutant.tests for mutant in mutants))

    def run(tests: tuple[str, ...]) -> tuple[int | None, str]:
        with tempfile.TemporaryDirectory(prefix="control-", dir=whole.parent) as room:
            return run_tests(tests, Path(room), whole)

    sound = True
    with ThreadPoolExecutor(jobs) as pool:
        for tests, (code, said) in zip(chosen, pool.map(run, chosen), strict=True):
            last = said.strip().splitlines()[-1:]
            print(f"{'passes' if code == 0 else 'FAILS':7}{' '.join(tests)}: {''.join(last)}", flush=True)
            sound = sound and code == 0
    return sound


def main() -> int:
    options = argparse.ArgumentParser(description="Plant faults into a copy of src; the tests must catch each of them.")
    options.add_argument("--only", nargs="+", metavar="NAME", help="only the faults, or rooms, of these names")
    options.add_argument("--jobs", type=int, default=1, help="faults at a time")
    options.add_argument("--list", action="store_true", help="show the faults and check that they can be planted")
    options.add_argument("--control", action="store_true", help="run the same tests where nothing is broken")
    asked = options.parse_args()
    known = {word for mutant in MUTANTS for word in (mutant.name, mutant.room)}
    if strange := [name for name in asked.only or () if name not in known]:
        options.error(f"no fault or room is called {strange[0]!r}")
    mutants = [each for each in MUTANTS if not asked.only or each.name in asked.only or each.room in asked.only]
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.room:<12}{mutant.name:<30}{mutant.what}")
    if wrong := list(problems(mutants)):
        print(*wrong, sep="\n")
        return 1
    print(f"{len(mutants)} faults can be planted")
    if asked.list:
        return 0
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutants-") as room:
        whole = make_copy(Path(room).resolve())
        if asked.control:
            return 0 if control(mutants, whole, asked.jobs) else 1
        return show(mutants, whole, asked.jobs)


def show(mutants: Sequence[Mutant], whole: Path, jobs: int) -> int:
    """Try the faults, a line for each as it comes."""
    begun = time.monotonic()
    width = max(len(mutant.what) for mutant in mutants)
    print(f"{'fault':<30}{'room':<12}{'what was broken':<{width}}  {'caught by':<110}{'seconds':>8}", flush=True)
    survivors = []
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(lambda mutant: try_mutant(mutant, whole), mutants)
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            fault = f"{mutant.name:<30}{mutant.room:<12}{mutant.what:<{width}}"
            print(f"{fault}  {outcome.by:<110}{outcome.seconds:>8.1f}", flush=True)
            survivors += [] if outcome.caught else [mutant.name]
    print(f"{len(mutants)} planted, {len(mutants) - len(survivors)} caught, {time.monotonic() - begun:.0f} seconds")
    if survivors:
        print(f"not caught: {', '.join(survivors)}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
