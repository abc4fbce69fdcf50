"""`sky.checkpoint`: what a call has done is not lost with its node."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyward.errors import UsageError
from skyward.model.fields.setting import whole
from skyward.node.task import task_context
from skyward.node.task.checkpoint import Checkpoint, address_of_call, address_of_key

if TYPE_CHECKING:
    from skyward.node.task.checkpoint_places import CheckpointPlace, CheckpointStorage

__all__ = ["checkpoint"]


def checkpoint(
    name: str = "",
    *,
    key: str | None = None,
    keep: int = 2,
    to: str | os.PathLike[str] | CheckpointStorage | None = None,
) -> Checkpoint:
    """
    Find the checkpoint of the call that this code is part of, or the one of a key.

    All attempts of a call have the same one, on whichever node they run; each rank of a broadcast has its own.
    A key stands for itself: in another call, another pool, another run of the program.

    Args:
        name: Which one of the call's, if it has several.
        key: A name of the user's own in place of the call; letters, digits, `-`, `_` and `.`.
        keep: How many versions are kept.
        to: Where: a folder that all nodes see which may run the call, such as the `mount=` of a provider's volume; or
            storage, which has `upload(path, key)`, `download(key, path)`, `ls(prefix)` and `rm(key)`. If left out, the
            pool's first disk with a `mount=`, else the client's disk; outside of tasks a folder of this machine.

    Returns:
        The checkpoint, with `load(default)`, `save(obj)`, `versions()` and `delete()`.

    Raises:
        ConfigError: If `keep` is no number of versions.
        UsageError: If another argument makes no sense, or it is not certain which call this thread works for.

    >>> import skyward as sky
    >>> @sky.function(retries=2)
    ... def train(steps: int) -> list[int]:
    ...     done = sky.checkpoint()
    ...     state = done.load({"step": 0, "seen": []})
    ...     while state["step"] < steps:
    ...         state = {"step": state["step"] + 1, "seen": [*state["seen"], os.getpid()]}
    ...         done.save(state)
    ...         if state["step"] == 2:
    ...             os._exit(1)  # as if the node had died
    ...     return state["seen"]
    >>> with sky.Compute(console="silent") as pool:
    ...     seen = train(4) >> pool
    >>> len(seen), len(set(seen))
    (4, 2)
    """
    whole(keep, "keep", least=1)
    if key is not None and name:
        raise UsageError(
            f"sky.checkpoint takes a name of the call's or a key, not both: name={name!r}, key={key!r}.",
            hint="Write the name into the key.",
        )
    context = task_context.owner()
    if context is None and task_context.in_task():
        raise UsageError(
            "sky.checkpoint was called in a thread that several calls may have started.",
            hint="Call it in the function's own thread, and pass on what it returns.",
        )
    if key is not None:
        address = address_of_key(key)
    elif context is not None:
        address = address_of_call(context, name)
    else:
        # The process counts as the call, so that a function can be tried out as it is.
        outside = task_context.TaskContext(call_id=os.getpid(), facts={}, membership={"job_id": "local"})
        address = address_of_call(outside, name)
    return Checkpoint(address, _place(to, context, named=key is not None), keep)


def _place(to: Any, context: task_context.TaskContext | None, *, named: bool) -> CheckpointPlace:
    from skyward.node.task.checkpoint_places import CheckpointStorage, InClient, InFolder, InStorage

    if isinstance(to, str | os.PathLike):
        folder = Path(to).expanduser()
        if not folder.is_absolute() and context is not None:
            raise UsageError(
                f"to={str(to)!r} is a relative path, and each node has a working directory of its own.",
                hint="Write the whole path of a folder that all nodes see.",
            )
        return InFolder(folder.absolute())
    if to is not None:
        if not isinstance(to, CheckpointStorage):
            raise UsageError(
                f"to={to!r} is neither a folder nor storage.",
                hint="Storage has upload(path, key), download(key, path), ls(prefix) and rm(key).",
            )
        return InStorage(to)
    if context is not None and (folder_of_pool := context.facts.get("checkpoints")):
        return InFolder(Path(folder_of_pool))
    if context is not None and context.keeping is not None:
        return InClient(context.keeping, named=named)
    return InFolder(_folder_of_keys() if named else _own_folder())


def _folder_of_keys() -> Path:
    """Return where the client keeps what has a key: for the pool that is open here, or one without a name."""
    from skyward.engine.pool.kept_files import named_folder
    from skyward.pending import current_pool

    pool = current_pool.get(None)
    return named_folder(getattr(pool, "name", None))


_own: dict[int, Path] = {}


def _own_folder() -> Path:
    """Return a folder that ends with this process."""
    process = os.getpid()
    if process not in _own:
        _own[process] = Path(tempfile.mkdtemp(prefix="skyward-checkpoints-"))
        atexit.register(_remove, process)
    return _own[process]


def _remove(process: int) -> None:
    if process == os.getpid():
        shutil.rmtree(_own[process], ignore_errors=True)
