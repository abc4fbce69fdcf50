"""`sky.put` in a task: the value stays in the memory of the node."""

from __future__ import annotations

from typing import Any

from skyward.errors import RefError
from skyward.link.blame import blame
from skyward.link.payload_making import pickled
from skyward.link.pickling import DataPickler, Pickler
from skyward.link.refs import HERE, INSIDE, Ref
from skyward.node.data.memory_share import free_memory
from skyward.node.data.node_store import RESERVE

__all__ = ["put_here"]


def put_here(value: object, *, data: bool) -> Ref[Any]:
    """
    Keep a value in this node's memory, as long as a Ref to it is here or at the client.

    Args:
        value: Anything that can be a result.
        data: Whether results of this node are opened as data.

    Raises:
        RefError: If the node has no memory for it.
        SerializationError: If it cannot be pickled.

    >>> put_here([1, 2], data=True).nbytes
    64
    """
    try:
        made = pickled((value,), DataPickler if data else Pickler, refs=INSIDE)
    except RefError:
        raise
    except Exception as error:
        raise blame(error, function="put", arguments={"value": value}) from error
    size = sum(made.sizes) + sum(map(len, made.buffers))
    free = free_memory()
    if free is not None and free < size + RESERVE:
        raise RefError(
            f"This node has no memory for a value of {size / (1 << 20):.1f} MiB that is put: "
            f"{free >> 20} MiB are free, and {RESERVE >> 20} MiB stay so.",
            hint="Take a machine with more memory, put smaller parts, or delete Refs that are needed no more.",
        )
    return HERE.put(made)
