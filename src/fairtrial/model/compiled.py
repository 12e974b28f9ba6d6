"""`training.compile`: in training, each block runs as one program of torch.compile's. Names and weights stay as they
are; scores, audits and loaded networks never run it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.attention import View
from fairtrial.model.layers import Dropout, dropout_mask, own_rng
from fairtrial.model.part import Part

FOLDER = "TORCHINDUCTOR_CACHE_DIR"  # where torch writes and compiles C++
LIMITS = ("cache_size_limit", "accumulated_cache_size_limit")  # of programs for one function: a block is one each
NEEDED = "it needs a C++ compiler and Python's headers (g++, python3-dev); or --set training.compile=false"

_numbers, _dropouts = count(), WeakValueDictionary[int, Dropout]()


@torch.library.custom_op("fairtrial::dropout_mask", mutates_args=())
def _dropout_mask(x: Tensor, share: float, number: Tensor) -> Tensor:
    """A compiler knows no generators; it calls this as it is. `number` is a tensor: another asks for no new program."""
    return dropout_mask(x, share, _dropouts[int(number)].generator)


@_dropout_mask.register_fake
def _(x: Tensor, share: float, number: Tensor) -> Tensor:
    return torch.empty_like(x)


def run_compiled(block: nn.Module, x: Tensor, view: View, parts: Sequence[Part]) -> Tensor:
    """As `block` would; what `compile_blocks` has not met, such as a last batch of one row, runs as it is written.
    Nothing is compiled while training goes on: a resumed trial runs the same programs, and ends with the same bits."""
    view.prepare()
    with torch.compiler.set_stance("default" if _compiling else "eager_on_recompile"):
        return _program(block, x, view, parts)


@torch.compile(dynamic=True)
def _program(block: nn.Module, x: Tensor, view: View, parts: Sequence[Part]) -> Tensor:
    found: Tensor = block(x, view, parts)
    return found


_compiling: list[nn.Module] = []


@torch.no_grad()
def compile_blocks(network: Any, step: Callable[[], object]) -> None:
    """Compile by one pass and its gradient. Afterwards all is as before: weights, buffers, generators."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.number = torch.tensor(next(_numbers))
            _dropouts[int(module.number)] = module
    buffers = {buffer: buffer.clone() for buffer in network.buffers()}
    was_training = network.training
    network.body.compiled = True
    _compiling.append(network)
    try:
        with warnings.catch_warnings(), torch.enable_grad(), own_rng(), _scratch_folder(), _many_programs():
            warnings.simplefilter("ignore")  # of what torch does by itself
            network.train()
            step()
    except Exception as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((line for line in lines if "raised:" not in line), type(error).__name__)
        raise BadInput(f"training.compile: torch cannot compile the network ({told[:300]})", NEEDED) from error
    finally:
        _compiling.remove(network)
        network.train(was_training).zero_grad(set_to_none=True)
        for buffer, before in buffers.items():
            buffer.copy_(before)


@contextmanager
def _scratch_folder() -> Iterator[None]:
    """Sources and objects of the compiler go where they are removed again; what is loaded stays loaded."""
    before = os.environ.get(FOLDER)
    with TemporaryDirectory(prefix="fairtrial-compile-", ignore_cleanup_errors=True) as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            os.environ.pop(FOLDER)
            os.environ |= {} if before is None else {FOLDER: before}


@contextmanager
def _many_programs() -> Iterator[None]:
    """One for each layer; made in this process, as others would outlive it."""
    import torch._dynamo.config as tracing
    import torch._inductor.config as compiling

    limits = {name: 1 << 16 for name in LIMITS if hasattr(tracing, name)}
    with tracing.patch(limits), compiling.patch(compile_threads=1):
        yield
