"""
How the processes that run user code are laid out on a node.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import choice, suggesting, switch, whole

__all__ = ["Executor", "PerNode", "Worker"]

Executor = Literal["auto", "thread", "process"]
PerNode: TypeAlias = int | Literal["accelerator"]


def _concurrency(value: int) -> int:
    """Return the number of tasks a rank runs at once, checked."""
    return whole(value, "concurrency", least=1)


def _executor(value: str) -> Executor:
    """Return the kind of executor, checked."""
    return cast("Executor", choice(value, "executor", ("auto", "thread", "process")))


def _buffer(value: int) -> int:
    """Return the number of tasks to send ahead, checked."""
    return whole(value, "buffer")


def _per_node(value: int | str) -> PerNode:
    """Return the number of ranks a node has, checked."""
    if isinstance(value, str):
        choice(value, "per_node", ("accelerator",), also="a whole number of at least 1")
        return "accelerator"
    try:
        return whole(value, "per_node", least=1)
    except ConfigError as error:
        raise ConfigError(f'{error.message[:-1]}; "accelerator" makes one rank for each.') from None


@suggesting
@frozen(kw_only=True)
class Worker:
    """
    Say how many tasks a node runs at once, and in what.

    Args:
        concurrency: How many tasks a rank runs at once.
        executor: `"thread"` runs a rank's tasks in the threads of one process, `"process"` each in a process of its
            own; `"auto"` is `"thread"`.
        buffer: How many further tasks always wait at each rank, beside those that cover its distance.
        reuse_processes: Whether a process runs one task after the other; False gives each task a fresh one.
        per_node: How many ranks a node has; `"accelerator"` makes one for each accelerator, which it has to itself.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Worker(concurrency=4, executor="process").processes_per_rank
    4
    """

    concurrency: int = field(default=1, converter=_concurrency)
    executor: Executor = field(default="auto", converter=_executor)
    buffer: int = field(default=0, converter=_buffer)
    reuse_processes: bool = field(default=True, validator=switch)
    per_node: PerNode = field(default=1, converter=_per_node)

    @property
    def threads_per_process(self) -> int:
        """
        Return how many threads of a worker process run tasks.

        >>> Worker(concurrency=4).threads_per_process, Worker(concurrency=4, executor="process").threads_per_process
        (4, 1)
        """
        return 1 if self.executor == "process" else self.concurrency

    @property
    def processes_per_rank(self) -> int:
        """
        Return how many worker processes a rank has.

        >>> Worker(concurrency=4).processes_per_rank
        1
        """
        return self.concurrency if self.executor == "process" else 1
