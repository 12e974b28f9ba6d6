"""A device that computes like the CPU and refuses to meet the CPU's tensors: what a GPU would refuse, without one.

Tensors there report the device `meta`, whose functions never run: a mode answers for them with real values. (torch's
fake tensors need a build with CUDA for as little as `x[None]`, and know no values, which packing a batch asks for.)"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
MOVES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Elsewhere(torch.Tensor):
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Elsewhere:
        how: dict[str, Any] = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=DEVICE, **how)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return answer(func, args, kwargs or {})


class PretendDevice(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return answer(func, args, kwargs or {})


def answer(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = any(isinstance(tensor, Elsewhere) for tensor in tensors)
    wanted = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
    if there and func not in MOVES:
        for tensor in tensors:
            if not isinstance(tensor, Elsewhere) and tensor.dim():  # a single number may come from the CPU
                raise RuntimeError(f"{func}: a CPU tensor {tuple(tensor.shape)} meets the device's")
    if wanted == DEVICE:
        kwargs = kwargs | {"device": torch.device("cpu")}
    found = func(*tree_map(inner_of, args), **tree_map(inner_of, kwargs))
    if func is torch.ops.aten.copy_.default:
        return args[0]
    if wanted == torch.device("cpu") or not (there or wanted == DEVICE):
        return found
    wrapped = tree_map(lambda leaf: Elsewhere(leaf) if isinstance(leaf, Tensor) else leaf, found)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if there and found is not None else wrapped


def inner_of(leaf: Any) -> Any:
    return leaf.inner if isinstance(leaf, Elsewhere) else leaf
