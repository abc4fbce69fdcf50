"""
Tensors in a pickle that is opened as data: their memory, and how it is to be read.
"""

from __future__ import annotations

import math
from pickle import PickleBuffer
from typing import Any

from skyward.link.data.maker import NOTHING, Callee, Maker, Shelf, malformed
from skyward.link.data.views import buffer_of, sizes

__all__ = ["reduce", "restore", "shelf"]


def reduce(obj: Any) -> tuple[Any, ...] | None:
    """
    Reduce a tensor to its memory, copied from an accelerator's; None for anything else of PyTorch's.

    Args:
        obj: Something of PyTorch's.

    Raises:
        TypeError: If its memory is not plain.
    """
    import torch

    if type(obj) not in (torch.Tensor, torch.nn.Parameter):
        return None
    if obj.is_meta:
        raise TypeError("a tensor on the device meta has no numbers that could travel")
    if obj.layout is not torch.strided or obj.is_quantized:
        raise TypeError(f"a tensor of layout {obj.layout} does not travel as data: return it as tensor.to_dense()")
    parameter = type(obj) is torch.nn.Parameter
    # What is conjugate or negated when it is read has other memory than values.
    plain = obj.detach().cpu().resolve_conj().resolve_neg().contiguous()
    flat = plain.view(-1).view(torch.uint8) if plain.numel() else torch.empty(0, dtype=torch.uint8)
    dtype = str(obj.dtype).removeprefix("torch.")
    return restore, (PickleBuffer(flat.numpy()), dtype, tuple(obj.shape), bool(obj.requires_grad), parameter)


def restore(buffer: Any, dtype: Any, shape: Any, requires_grad: Any, parameter: Any) -> Any:
    """
    Make a tensor of its memory, which it keeps using.

    Args:
        buffer: The memory.
        dtype: The name of the type of its numbers.
        shape: How many there are in each dimension.
        requires_grad: Whether gradients are kept for it.
        parameter: Whether it is a parameter of a module.

    Raises:
        ValueError: If they do not fit together.
    """
    import torch

    kind = getattr(torch, dtype, None) if type(dtype) is str else None
    if not isinstance(kind, torch.dtype) or type(requires_grad) is not bool or type(parameter) is not bool:
        malformed("a tensor of no dtype")
    shape, memory = sizes(shape), buffer_of(buffer)
    if memory.nbytes:
        if memory.readonly:
            memory = memoryview(bytearray(memory))
        made = torch.frombuffer(memory, dtype=torch.uint8).view(kind).view(shape)
    else:
        if math.prod(shape):
            malformed("a tensor without its memory")
        made = torch.empty(shape, dtype=kind)
    return torch.nn.Parameter(made, requires_grad=requires_grad) if parameter else made.requires_grad_(requires_grad)


def _device(name: Any, index: Any = None) -> Any:
    import torch

    if type(name) is not str or not (index is None or type(index) is int):
        malformed("a device without a name")
    return torch.device(name) if index is None else torch.device(name, index)


def _size(lengths: Any) -> Any:
    import torch

    return torch.Size(sizes(lengths))


def shelf() -> Shelf:
    """Return the names of PyTorch, which is loaded."""
    import torch

    kinds = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
    named: dict[tuple[str, str], Any] = {("torch", name): value for name, value in kinds.items()}
    restored = Callee("skyward.link.data.tensors.restore")
    named[__name__, "restore"] = restored
    named["torch", "Size"], named["torch", "device"], named["torch", "Tensor"] = torch.Size, torch.device, torch.Tensor
    makers = {restored: Maker(restore), torch.Size: Maker(_size), torch.device: Maker(_device), torch.Tensor: NOTHING}
    return Shelf(named, makers)
