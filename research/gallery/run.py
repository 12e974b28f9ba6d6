"""Faults of released software that the leak audit finds, each beside the release that mended it.

    python research/gallery/run.py [EXHIBIT ...] [--list]

For every exhibit two throw-away environments are made (pip; torch and all else that fits is shared with this Python, so
that little is downloaded). In each of them `fairtrial audit` and a short script without fairtrial look at the same
small network with random weights, on the CPU. What was found is kept in `outcomes/` and not asked again; the page is
written from there.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import fairtrial

Found = dict[str, dict[str, Any]]  # by release
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FAIL, PASS = "FAIL", "PASS"
SOURCE = Path(fairtrial.__file__).parents[1]
SECONDS, TIME_LIMIT = 1800, "25m"  # for one leak audit, on a busy machine
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SHAPE = ("shape.layers=2", "shape.width=32", "shape.hidden=64")
TRANSFORMERS = "https://github.com/huggingface/transformers"

INTRODUCTION = """
# Gallery of released faults that the leak audit finds

A decoder that sees the future, a mask that is ignored, a map that shows another attention: such faults reach releases,
since nothing crashes and no learning curve shows them. Each network below was released with one. All were found by
others and discussed in the open (the links lead there). They stand here to show what the
[leak audit](../../docs/leak-audit.md) says of the faulty release, and what it says of the mended one.

This page is made by one command, in throw-away environments (torch 2.13 and Python are shared), with small networks
of random weights, on a CPU:

    make research NAME=gallery

The leak audit looks at a network whose weights have been moved from their first values. Values in brackets are nats
(M3, M7, K1, K2, K3, C1, E1), a gradient (M4) or an attention weight (M2).
Every fault has a short script without fairtrial; it prints one number, which should be 0 up to rounding.
"""
HEADER = "| network | release | caught by | mended in | the leak audit there |\n|---|---|---|---|---|"

# what a script asks of a `model` that is there: one number, which should be 0 up to rounding
FUTURE = """
one = torch.randint(1, 50, (1, 32))
other = one.clone()
other[0, 20:] = torch.randint(1, 50, (12,))  # other words from position 20 on
with torch.no_grad():
    change = (logits(model(one)) - logits(model(other)))[0, :20].abs().max()
print(f"words from position 20 on change the predictions before it by {change:.1e}")
"""
LEFT = """
text = torch.randint(1, 50, (1, 12))
padded = torch.cat((torch.full((1, 5), 7), text), 1)
mask = torch.arange(17)[None] >= 5  # the first five are padding, whatever stands there
with torch.no_grad():
    alone, after = logits(model(text)), logits(model(padded, GIVEN))
print(f"masked padding before a text changes its predictions by {(after[0, 5:] - alone[0]).abs().max():.1e}")
"""
POSITIONS = "attention_mask=mask.long(), position_ids=(mask.cumsum(1) - 1).clamp(min=0)"
LEFT_WITH_POSITIONS = LEFT.replace("GIVEN", POSITIONS)
LEFT_WITH_MASK = LEFT.replace("GIVEN", "attention_mask=mask.long()")
MAPS = """
with torch.no_grad():
    maps = model(torch.randint(1, 50, (1, 12)), output_attentions=True).attentions
print(f"without a mask, attention maps put up to {max(each.triu(1).max() for each in maps):.1e} on the future")
"""
MOVED = """
for weight in model.parameters():  # fresh weights are small and hide much
    weight.data += 0.2 * torch.randn_like(weight)
"""
BUILD = """

def build(vocabulary, length, classes, seed):
    network = Network(vocabulary, length)
    network.fairtrial = {SAID}
    return network
"""
BRIDGE = """
import torch
from tokenizers import Tokenizer, models
from transformer_lens.model_bridge import TransformerBridge
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

torch.manual_seed(0)
words = Tokenizer(models.WordLevel({"a": 0}, "a"))
words = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="a", pad_token="a")
no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
config = GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=32, **no_dropout)
network = GPT2LMHeadModel(config)
model = TransformerBridge.boot_transformers("gpt2", hf_model=network, tokenizer=words, device="cpu").eval()
logits = lambda output: output
"""


@dataclass(frozen=True, eq=False)
class Exhibit:
    name: str  # in a file's name and on the command line
    package: str
    faulty: str  # the release
    mended: str  # the first that is known to be right; empty: none is
    fault: str  # exhibits of one fault stand together on the page
    checks: tuple[str, ...]  # of the leak audit, that must fail
    asks: str  # the end of the script without fairtrial
    network: str = ""  # a class of transformers with its configuration
    config: dict[str, Any] = field(default_factory=dict)
    build: str = ""  # or the beginning of the script, which makes `model` and `logits`
    file: str = ""  # and a file with a function `build` for the leak audit
    task: str = "lm"
    precision: str = "double"  # of the script
    remains: str = ""  # what the mended release still fails, and why

    @property
    def script(self) -> str:
        """Without fairtrial: it prints what the fault does."""
        begin = self.build
        if not begin:
            config = self.network.replace("ForCausalLM", "Config")
            given = "".join(f"    {name}={value!r},\n" for name, value in {"vocab_size": 50, **self.config}.items())
            begin = f"""
import torch
from transformers import {config}, {self.network}

torch.manual_seed(0)
config = {config}(
{given})
model, logits = {self.network}(config).{self.precision}().eval(), lambda output: output.logits
"""
        return (begin.strip("\n") + MOVED.rstrip("\n") + self.asks.rstrip("\n")).replace("'", '"') + "\n"

    @property
    def command(self) -> list[str]:
        """Of the leak audit, after `fairtrial`."""
        options = ",".join(f"{name}={json.dumps(value)}" for name, value in self.config.items())
        model = "model.py:build" if self.file else f"hf:{self.network}:{options}"
        settings = [word for each in SHAPE for word in ("--set", each)]
        return ["audit", "--model", model, "--task", self.task, *settings]

    @property
    def asked(self) -> dict[str, Any]:
        return {"command": self.command, "script": self.script, "file": self.file}

    @property
    def shown(self) -> str:
        return self.network or self.package

    @property
    def releases(self) -> list[str]:
        return [release for release in (self.faulty, self.mended) if release]

    def path(self, release: str, folder: Path) -> Path:
        return HERE / "outcomes" / f"{self.name}-{release}.json"

    def kept(self, folder: Path) -> Found:
        """What was found in each release, where the same was asked."""
        paths = {release: self.path(release, folder) for release in self.releases}
        found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.is_file()}
        return {release: each for release, each in found.items() if each["asked"] == self.asked}


def bert(name: str, remains: str = "", **config: Any) -> Exhibit:
    return Exhibit(
        name.lower(),
        "transformers",
        "5.17.0",
        "5.18.0",
        "encoder-mask",
        ("M3", "M4"),
        FUTURE,
        f"{name}ForCausalLM",
        {**SMALL, "is_decoder": True, **config},
        remains=remains,
    )


def batch_of_one(
    name: str, asks: str = LEFT_WITH_POSITIONS, precision: str = "double", remains: str = "", **config: Any
) -> Exhibit:
    release = ("transformers", "5.14.1", "5.15.0", "batch-of-one", ("K2",), asks)
    return Exhibit(name.lower(), *release, f"{name}ForCausalLM", config, precision=precision, remains=remains)


def wrong_axis(name: str, faulty: str, mended: str, network: str, remains: str = "", **config: Any) -> Exhibit:
    release = ("transformers", faulty, mended, "wrong-axis", ("M3", "M4"), FUTURE)
    return Exhibit(name, *release, f"{network}ForCausalLM", config, remains=remains)


MAMBA2 = {"hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 1}
EXHIBITS = (
    bert("RoFormer"),
    bert(
        "BigBird",
        attention_type="original_full",
        remains="M14g is amber: a pooler that a language model does not use gets no gradient.",
    ),
    bert("RemBert", input_embedding_size=32, output_embedding_size=32),
    bert("MegatronBert"),
    Exhibit(
        "doge",
        "transformers",
        "5.17.0",
        "5.18.0",
        "doge",
        ("M3", "E1"),
        FUTURE,
        "DogeForCausalLM",
        {**SMALL, "num_key_value_heads": 2, "keep_window_size": 2048},  # smaller, equal scores are chosen by chance
    ),
    wrong_axis(
        "zamba2",
        "5.14.1",
        "5.15.0",
        "Zamba2",
        **SMALL,
        num_key_value_heads=2,
        layers_block_type=["linear_attention", "hybrid"],
        mamba_d_state=8,
        n_mamba_heads=2,
        chunk_size=8,
        use_mamba_kernels=False,
        remains="Another difference is left, also in 5.22.2: whole texts are read with the time step held above "
        "`time_step_min`, single steps with a cache are not, which costs up to 0.03 nats here (C1, C1p, C2, L1).",
    ),
    wrong_axis(
        "nemotronh",
        "5.14.1",
        "5.15.0",
        "NemotronH",
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=64,
        layers_block_type=["linear_attention", "full_attention"],
        ssm_state_size=8,
        mamba_num_heads=4,
        mamba_head_dim=16,
        n_groups=1,
        chunk_size=8,
        use_mamba_kernels=False,
    ),
    wrong_axis(
        "mamba2-chunks",
        "4.47.1",
        "4.48.0",
        "Mamba2",
        **MAMBA2,
        chunk_size=8,
        remains="What remains is the fault of the next section (K2, C2), and a cache that takes single steps only "
        "(C1p is amber).",
    ),
    batch_of_one(
        "Bamba",
        **SMALL,
        num_key_value_heads=2,
        attn_layer_indices=[1],
        mamba_n_heads=4,
        mamba_d_head=16,
        mamba_d_state=8,
        mamba_n_groups=1,
        mamba_chunk_size=8,
        remains="Another finding is left, also in 5.22.2: with a cache and no position ids, positions begin at 0 again "
        "at every call (C1, C1p, L1).",
    ),
    batch_of_one(
        "FalconH1",
        **SMALL,
        num_key_value_heads=2,
        mamba_d_ssm=64,
        mamba_n_heads=4,
        mamba_d_head=16,
        mamba_d_state=8,
        mamba_n_groups=1,
        mamba_chunk_size=8,
    ),
    batch_of_one(
        "Qwen3Next",
        precision="float",
        **SMALL,
        num_key_value_heads=2,
        head_dim=16,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        layer_types=["linear_attention", "full_attention"],
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
    ),
    batch_of_one(
        "Lfm2", **SMALL, num_key_value_heads=2, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False
    ),
    batch_of_one("Mamba2", LEFT_WITH_MASK, **MAMBA2, chunk_size=8),
    Exhibit(
        "gemma2",
        "transformers",
        "4.42.1",
        "4.42.2",
        "gemma2",
        ("M3", "M4"),
        FUTURE,
        "Gemma2ForCausalLM",
        {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 8},
    ),
    Exhibit(
        "mamba",
        "transformers",
        "4.43.4",
        "4.45.0",
        "swallowed-mask",
        ("K3",),
        LEFT_WITH_MASK,
        "MambaForCausalLM",
        {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        remains="What remains: after a prompt of one or two tokens its cache puts the next ones into the wrong place "
        "of the convolution (C1), it takes single steps only (C1p), and its first loss is 7% off (M14).",
    ),
    Exhibit(
        "llama-maps",
        "transformers",
        "4.40.2",
        "4.41.0",
        "maps",
        ("M2",),
        MAPS,
        "LlamaForCausalLM",
        {**SMALL, "num_key_value_heads": 2},
    ),
    Exhibit(
        "x-flash",
        "x-transformers",
        "1.16.11",
        "1.16.15",
        "x-flash",
        ("M7", "K1"),
        """
text = torch.randint(1, 50, (1, 12))
padded = torch.cat((text, torch.full((1, 5), 7)), 1)
mask = torch.arange(17)[None] < 12  # the last five are padding
with torch.no_grad():
    alone, before = model(text), model(padded, mask=mask)
print(f"masked padding after a text changes its predictions by {(before[0, :12] - alone[0]).abs().max():.1e}")
""",
        build="""
import torch
from x_transformers import Encoder, TransformerWrapper

torch.manual_seed(0)
layers = Encoder(dim=32, depth=2, heads=2, attn_flash=True)
model = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers).double().eval()
""",
        task="classify",
        remains="M14 (amber) is about the linear layer of `model.py`, not about the library.",
        file="""
from torch import nn
from x_transformers import Encoder, TransformerWrapper


class Network(nn.Module):
    def __init__(self, vocabulary, length, classes):
        super().__init__()
        layers = Encoder(dim=32, depth=2, heads=2, attn_flash=True)
        self.inner = TransformerWrapper(num_tokens=vocabulary, max_seq_len=length, attn_layers=layers)
        self.inner.to_logits, self.out = nn.Identity(), nn.Linear(32, classes)

    def forward(self, ids, mask=None):  # the mean over real tokens
        x = self.inner(ids, mask=mask, return_embeddings=True)
        real = x.new_ones(x.shape[:2]) if mask is None else mask.to(x.dtype)
        return self.out((x * real[..., None]).sum(1) / real.sum(1, keepdim=True))


def build(vocabulary, length, classes, seed):
    network = Network(vocabulary, length, classes)
    network.fairtrial = {"longest": length}
    return network
""",
    ),
    Exhibit(
        "x-left",
        "x-transformers",
        "1.22.16",
        "1.22.19",
        "x-left",
        ("K2",),
        LEFT.replace("model(text)", "model(text, seq_start_pos=torch.tensor([0]))")
        .replace("GIVEN", "seq_start_pos=torch.tensor([5])")
        .replace("mask = torch.arange(17)[None] >= 5  # the first", "# the first"),
        build="""
import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=2)
model = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers).double().eval()
logits = lambda output: output
""",
        file="""
import torch
from torch import nn
from x_transformers import Decoder, TransformerWrapper


class Network(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        layers = Decoder(dim=32, depth=2, heads=2)
        self.inner = TransformerWrapper(num_tokens=vocabulary, max_seq_len=length, attn_layers=layers)

    def forward(self, ids, mask=None):
        start = torch.zeros(len(ids), dtype=torch.long) if mask is None else (~mask).sum(1)
        return self.inner(ids, seq_start_pos=start)
"""
        + BUILD.replace("SAID", '"pads": "left", "longest": length'),
    ),
    Exhibit(
        "lens",
        "transformer-lens",
        "3.5.0",
        "3.8.0",
        "lens",
        ("K2",),
        LEFT_WITH_MASK,
        build=BRIDGE,
        remains="What remains is about training, which a bridge is not made for: its split projections are views of "
        "the joint weights, which get no gradient of their own (M14g) and cannot be saved twice (R2, R3).",
        file="""
import torch
from torch import nn
from tokenizers import Tokenizer, models
from transformer_lens.model_bridge import TransformerBridge
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast


class Network(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        words = Tokenizer(models.WordLevel({"a": 0}, "a"))
        words = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="a", pad_token="a")
        no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        config = GPT2Config(vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=2, n_positions=length, **no_dropout)
        given = {"hf_model": GPT2LMHeadModel(config), "tokenizer": words, "device": "cpu"}
        self.inner = TransformerBridge.boot_transformers("gpt2", **given)

    def forward(self, ids, attention_mask=None):
        return self.inner(ids, attention_mask=attention_mask)
"""
        + BUILD.replace("SAID", '"pads": "both", "longest": length'),
    ),
    Exhibit(
        "linformer",
        "linformer-pytorch",
        "0.19.3",
        "",
        "linformer",
        ("M3", "M4"),
        FUTURE,
        build="""
import torch
from linformer_pytorch import LinformerLM

torch.manual_seed(0)
sizes = {"input_size": 32, "channels": 32, "dim_k": 16, "nhead": 2, "depth": 2, "dim_ff": 64}
model, logits = LinformerLM(num_tokens=50, causal=True, **sizes).double().eval(), lambda output: output
""",
        file="""
from torch import nn
from torch.nn.functional import pad

from linformer_pytorch import LinformerLM


class Network(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        sizes = {"input_size": length, "channels": 32, "dim_k": length // 2, "nhead": 2, "depth": 2, "dim_ff": 64}
        self.inner, self.length = LinformerLM(num_tokens=vocabulary, causal=True, **sizes), length

    def forward(self, ids):  # it reads texts of one length only: shorter ones are filled up, as its Padder does
        return self.inner(pad(ids, (0, self.length - ids.shape[1])))[:, : ids.shape[1]]
"""
        + BUILD.replace("SAID", '"longest": length'),
    ),
)


@dataclass(frozen=True)
class Fault:
    title: str
    what: str
    links: tuple[str, ...]


FAULTS = {
    "encoder-mask": Fault(
        "Decoders with the mask of an encoder",
        "The causal heads of four BERT families built a mask for both directions although their configuration said "
        "`is_decoder`. Every position saw the token that it was to predict, and the training loss fell to almost zero. "
        "In releases from 5.9.0 to 5.17.0.",
        (f"{TRANSFORMERS}/issues/48745",),
    ),
    "doge": Fault(
        "Doge: causal with one kernel, not with the other",
        "With the default kernel (sdpa) and no padding the causal mask is left out, since the kernel can make its own. "
        "Doge then gives the kernel its dynamic mask, which hides no future. With eager attention it is right.",
        (f"{TRANSFORMERS}/issues/48748",),
    ),
    "wrong-axis": Fault(
        "Chunks summed over the wrong axis",
        "Where the CUDA kernels of Mamba-2 are missing, states are carried from chunk to chunk in plain torch, by a "
        "sum over the wrong axis: what earlier chunks left is lost, and the decay of later chunks reaches back into "
        "predictions before them. Texts of one chunk show nothing. It was mended in Mamba-2 in 4.48.0 and had been "
        "copied into two other families before.",
        (f"{TRANSFORMERS}/pull/35154", f"{TRANSFORMERS}/issues/47246", f"{TRANSFORMERS}/issues/47475"),
    ),
    "batch-of-one": Fault(
        "A batch of one is not masked",
        "The mask of padding was applied in batches of two or more only. A single text that is padded on the left was "
        "read with its padding, and its predictions differed from those of the same text in a batch. A test of batches "
        "cannot see it.",
        (f"{TRANSFORMERS}/pull/46773",),
    ),
    "gemma2": Fault(
        "Gemma 2: a window that shows the future",
        "In layers with a sliding window the additive mask was multiplied by a triangle of ones and zeros, which "
        "turned the hidden future into zeros, that is, into what may be seen.",
        (f"{TRANSFORMERS}/pull/31673",),
    ),
    "swallowed-mask": Fault(
        "Mamba: a mask is taken and ignored",
        "`forward` took any keyword, a tokenizer's `attention_mask` among them, and did not use it: `model(**batch)` "
        "with padding on the left gave other predictions than each text alone.",
        (f"{TRANSFORMERS}/issues/31540", f"{TRANSFORMERS}/pull/32677"),
    ),
    "maps": Fault(
        "Llama: maps of another attention",
        "Asked for attention maps, the fused kernel's class falls back to eager attention, but the causal mask that "
        "the kernel would have made for itself is missing: without a mask of padding, the maps (and what is computed "
        "with them) see the future.",
        (f"{TRANSFORMERS}/issues/30813", f"{TRANSFORMERS}/pull/30652"),
    ),
    "x-flash": Fault(
        "x-transformers: a mask upside down",
        "With `attn_flash` a mask was True where a token is hidden; torch's kernel takes True for what may be seen. "
        "With a mask of padding, texts were read by their padding alone.",
        ("https://github.com/lucidrains/x-transformers/issues/160",),
    ),
    "x-left": Fault(
        "x-transformers: padding on the left is not hidden",
        "`seq_start_pos` tells where texts begin. The mask made from it was built over the wrong axis, and then handed "
        "to attention as one for another context, which there is none of: it had no effect.",
        ("https://github.com/lucidrains/x-transformers/issues/187",),
    ),
    "lens": Fault(
        "TransformerLens: positions that ignore the mask",
        "`TransformerBridge` was given a mask of padding on the left and counted positions from the padding on. "
        "`HookedTransformer`, which it replaces, counts from the first real token.",
        ("https://github.com/TransformerLensOrg/TransformerLens/issues/1609",),
    ),
    "linformer": Fault(
        "linformer-pytorch: a causal mask after the words are mixed",
        "Linformer mixes keys and values along the text before attention, so a triangle over what comes out hides no "
        "future. The author says so in the thread; 0.19.3 is the last release and `causal=True` is still offered.",
        ("https://github.com/tatp22/linformer-pytorch/issues/16",),
    ),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="EXHIBIT", help="by default all that are not done")
    options.add_argument("--folder", type=Path, default=HERE / "runs", help="of the environments")
    options.add_argument("--list", action="store_true", help="name the exhibits and end")
    chosen = options.parse_args()
    known = {exhibit.name: exhibit for exhibit in EXHIBITS}
    if unknown := [name for name in chosen.names if name not in known]:
        sys.exit(f"no exhibit is called {unknown[0]!r}; there are: {', '.join(known)}")
    if chosen.list:
        print("\n".join(f"{each.name:<14} {each.package} {each.faulty} -> {each.mended or '-'}" for each in EXHIBITS))
        return
    for exhibit in [known[name] for name in chosen.names] or EXHIBITS:
        for release in exhibit.releases:
            begun = time.monotonic()
            found, new = look_at(exhibit, release, chosen.folder)
            took = f"{time.monotonic() - begun:.0f} s" if new else "done before"
            print(f"{exhibit.name:<14} {release:<8} {spoken(found)} ({took})", flush=True)
    missing = [each.name for each in EXHIBITS if not all(map(each.kept(chosen.folder).__contains__, each.releases))]
    if missing:
        print(f"the page waits for: {', '.join(missing)}")
        return
    target = HERE / "README.md"
    target.write_text(page({each.name: each.kept(chosen.folder) for each in EXHIBITS}), encoding="utf-8", newline="\n")
    print(f"written: {target}")


def look_at(exhibit: Exhibit, release: str, folder: Path) -> tuple[dict[str, Any], bool]:
    """What the leak audit and the script say of one release, and whether they were asked now."""
    if release in (kept := exhibit.kept(folder)):
        return kept[release], False
    path = exhibit.path(release, folder)
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    same = all(old.get("asked", {}).get(name) == exhibit.asked[name] for name in ("command", "file"))
    found = {"asked": exhibit.asked} | ask(exhibit, release, folder, old.get("findings") if same else None)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1), encoding="utf-8", newline="\n")
    return found, True


def ask(exhibit: Exhibit, release: str, folder: Path, findings: list[Any] | None) -> dict[str, Any]:
    """The script, and the leak audit unless its findings are there."""
    try:
        python = environment(exhibit, release, folder)
    except subprocess.CalledProcessError as error:
        return {"error": f"cannot be installed: {last_line(error.stderr)}"}
    with tempfile.TemporaryDirectory() as here:
        (Path(here) / "model.py").write_text(exhibit.file, encoding="utf-8")
        (Path(here) / "script.py").write_text(exhibit.script, encoding="utf-8")
        script = run(python, ["script.py"], here)
        if script.returncode:
            return {"error": f"the script without fairtrial ends with {last_line(script.stderr)}"}
        found = {"script": last_line(script.stdout), "findings": findings}
        if findings is not None:
            return found
        passport = run(python, ["-m", "fairtrial", *exhibit.command, "--time-limit", TIME_LIMIT, "--json"], here)
    try:
        said = json.loads(passport.stdout)
    except ValueError:
        return {"error": f"the leak audit ends with {passport.returncode}: {last_line(passport.stderr)}"}
    if any("time" in each["verdict"] for each in said["findings"]):
        return {"error": f"the leak audit takes longer than {TIME_LIMIT}"}
    return found | {"findings": said["findings"], "code": said["code"]}


def run(python: Path, command: list[str], here: str) -> subprocess.CompletedProcess[str]:
    quiet = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    given: Any = {"cwd": here, "env": os.environ | quiet | {"PYTHONPATH": str(SOURCE)}, "capture_output": True}
    return subprocess.run([str(python), *command], timeout=SECONDS, text=True, **given)


def environment(exhibit: Exhibit, release: str, folder: Path) -> Path:
    """The Python of an environment with this release; what else it needs is this Python's where the version fits."""
    home = folder / "environments" / f"{exhibit.package}-{release}"
    python, ready = home / "bin" / "python", home / "ready"
    if ready.is_file():
        return python
    shell: Any = {"check": True, "capture_output": True, "text": True}
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)], **shell)
    ask_where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = Path(subprocess.run([str(python), "-c", ask_where], **shell).stdout.strip())
    paths = dict.fromkeys(sysconfig.get_paths()[kind] for kind in ("purelib", "platlib"))
    (own / "shared.pth").write_text("\n".join(paths), encoding="utf-8")  # after the environment's own packages
    limits = home / "limits.txt"
    limits.write_text(f"torch=={torch.__version__.partition('+')[0]}\n", encoding="utf-8")  # never fetched again
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
    wanted = f"{exhibit.package}=={release}"
    subprocess.run([*pip, "--disable-pip-version-check", "--constraint", str(limits), wanted], **shell)
    ready.touch()
    return python


def spoken(found: dict[str, Any]) -> str:
    if "error" in found:
        return found["error"]
    failed = [each["id"] for each in found["findings"] if each["verdict"] == FAIL]
    return f"FAIL {', '.join(failed)}" if failed else PASS


def page(found: dict[str, Found]) -> str:
    shown = [each for each in EXHIBITS if is_caught(each, found[each.name])]
    clean = [each for each in shown if each.mended and spoken(found[each.name][each.mended]) == PASS]
    counted = f"{len(shown)} networks with a released fault; {len(clean)} of them have no finding at all once mended."
    codes = {each.get("code") for releases in found.values() for each in releases.values()}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    counted += f" All leak audits are of one commit, {commit.strip()}." * (len(codes) == 1)
    lines = [INTRODUCTION.strip(), "", counted, "", HEADER, *(row(each, found[each.name]) for each in shown), ""]
    for name, fault in FAULTS.items():
        lines += section(fault, {each: found[each.name] for each in shown if each.fault == name})
    if hidden := [each for each in EXHIBITS if each not in shown]:
        lines += ["## What could not be shown", ""]
        lines += [f"- {each.package} {each.faulty}, {each.name}: {why_not(found[each.name])}" for each in hidden]
    return "\n".join(lines).rstrip() + "\n"


def failures(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in found.get("findings", ()) if each["verdict"] == FAIL}


def is_caught(exhibit: Exhibit, found: Found) -> bool:
    """In the faulty release by every check that is there for it, and by none of them in the mended one."""
    failed, mended = failures(found[exhibit.faulty]), found.get(exhibit.mended, {})
    seen = all(id in failed and failed[id]["value"] is not None for id in exhibit.checks)  # a value: it did not raise
    return seen and "error" not in mended and not set(exhibit.checks) & failures(mended).keys()


def why_not(found: Found) -> str:
    return "; ".join(f"{release}: {spoken(each)}" for release, each in found.items())


def row(exhibit: Exhibit, found: Found) -> str:
    failed = failures(found[exhibit.faulty])
    caught = ", ".join(f"{id} ({failed[id]['value']:.2g})" for id in exhibit.checks)
    more = f" and {len(failed) - len(exhibit.checks)} more" * (len(failed) > len(exhibit.checks))
    after = spoken(found[exhibit.mended]) if exhibit.mended else "-"
    release = f"{exhibit.package} {exhibit.faulty}"
    return f"| `{exhibit.shown}` | {release} | {caught}{more} | {exhibit.mended or 'none'} | {after} |"


def section(fault: Fault, exhibits: dict[Exhibit, Found]) -> list[str]:
    """The fault, what the leak audit said, the script and what it printed, the commands."""
    if not exhibits:
        return []
    first, *others = exhibits
    lines = [f"## {fault.title}", "", f"{fault.what} ({', '.join(f'<{link}>' for link in fault.links)})", ""]
    for exhibit, found in exhibits.items():
        told = failures(found[exhibit.faulty])[exhibit.checks[0]]
        lines.append(f"- `{exhibit.shown}` {exhibit.faulty}, {told['id']}: {told['meaning']}")
        if exhibit.remains:
            lines.append(f"  In {exhibit.mended} this is mended. {exhibit.remains}")
    lines += ["", "Without fairtrial:", "", *code(first.script, "python")]
    for each in others:
        begin, _, end = each.script.partition(MOVED)
        new = [line for line in end.splitlines() if line not in first.script.splitlines()]
        lines += [f"For `{each.network}` it begins", "", *code(begin, "python")]
        lines += ["and has", "", *code("\n".join(new), "python")] * bool(new)
    printed = [f"{each.faulty:<8} {found[each.faulty]['script']}" for each, found in exhibits.items()]
    printed += [f"{each.mended:<8} {found[each.mended]['script']}" for each, found in exhibits.items() if each.mended]
    lines += ["It prints (in this order)" if others else "It prints", "", *code("\n".join(printed))]
    if first.file:
        lines += ["The leak audit, of a `model.py`:", "", *code(first.file.strip(), "python")]
    return lines + code("\n".join(f"fairtrial {shlex.join(each.command)}" for each in exhibits))


def code(text: str, kind: str = "") -> list[str]:
    return [f"```{kind}", *text.splitlines(), "```", ""]


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:300]


if __name__ == "__main__":
    main()
