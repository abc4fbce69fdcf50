"""
What happens to tasks, and what is measured while they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from attrs import NOTHING, frozen

from skyward.model.events.event_base import SkywardEvent

if TYPE_CHECKING:
    from skyward.model.instances.instance import InstanceInfo

# Tasks and what they write


@frozen(kw_only=True)
class TaskStarted(SkywardEvent):
    """Report that an attempt of a call began on `node`."""

    task_id: str
    function: str
    node: int


@frozen(kw_only=True)
class TaskCompleted(SkywardEvent):
    """
    Report that an attempt of a call ended.

    Args:
        task_id: The id that its `TaskStarted` had.
        function: Name of the function.
        node: Where it ran; None for a call that never reached a node.
        success: Whether it returned.
        duration: How long it ran, in seconds.
        error: The exception in one line, if it did not return.
        again: Whether it is tried again.
        retry_in: Seconds until then, 0 for at once; None if it is not tried again.
        stopped: Whether it was stopped on purpose: it was cancelled, its stream was left, or its pool was.
    """

    task_id: str
    function: str
    node: int | None
    success: bool = True
    duration: float = 0.0
    error: str | None = None
    again: bool = False
    retry_in: float | None = None
    stopped: bool = False


@frozen(kw_only=True)
class Progress(SkywardEvent):
    """
    Report how many parts of one `map` or `gather` are done.

    Args:
        label: What is counted, such as the function's name; one bar per label.
        done: How many are done.
        total: How many there are; None while that is unknown.
    """

    label: str
    done: int
    total: int | None = None


@frozen(kw_only=True, init=False)
class Log(SkywardEvent):
    """
    Carry one line that user code wrote on a node.

    Args:
        line: The line, without its end.
        stream: Where it was written.
        node: Index of the node.
        task_id: The task that wrote it, where that is known.
        at: When, in seconds since the epoch; now unless it is said.
        instance: The instance that it was written on.
        timestamp: The same as `at`, under its older name.
        instance_id: Id of the instance, where no `instance` is given.

    >>> LogLine(node=0, instance_id="i-7", line="epoch 1", timestamp=12.0).instance_id
    'i-7'
    """

    line: str
    stream: Literal["stdout", "stderr"] = "stdout"
    node: int
    task_id: str | None = None

    def __init__(
        self,
        *,
        line: str,
        node: int,
        stream: Literal["stdout", "stderr"] = "stdout",
        task_id: str | None = None,
        at: float | None = None,
        instance: InstanceInfo | None = None,
        timestamp: float | None = None,
        instance_id: str | None = None,
    ) -> None:
        said: Any = timestamp if at is None else at
        if instance is None and instance_id is not None:
            from skyward.model.instances.instance import InstanceInfo

            instance = InstanceInfo(node=node, id=instance_id)
        # What attrs is given nothing for, it makes by the field's own default.
        when: Any = NOTHING if said is None else said
        self.__attrs_init__(at=when, instance=instance, line=line, stream=stream, node=node, task_id=task_id)

    @property
    def timestamp(self) -> float:
        """Return `at`, under its older name."""
        return self.at

    @property
    def instance_id(self) -> str | None:
        """Return the id of the instance, where it is known."""
        return self.instance.id if self.instance is not None else None


LogLine = Log


# Measurements


@frozen(kw_only=True)
class Metric(SkywardEvent):
    """Carry one measured value of one node, in `unit`."""

    name: str
    value: float
    unit: str = ""
    node: int


@frozen(kw_only=True)
class Metrics(SkywardEvent):
    """
    Carry the usual measurements of one node, once a second.

    Args:
        cpu_percent: Of all cores together, 0 to 100.
        gpu_utilization: Mean of the node's accelerators, 0 to 100; None where there is none.
        gpu_temperature: Of the hottest accelerator, in °C.
    """

    instance_id: str
    node: int
    cpu_percent: float
    memory_percent: float
    memory_used_mb: float
    memory_total_mb: float
    gpu_utilization: float | None = None
    gpu_memory_used_mb: float | None = None
    gpu_memory_total_mb: float | None = None
    gpu_temperature: float | None = None
