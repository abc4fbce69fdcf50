"""Events of making a machine into a node."""

from __future__ import annotations

from typing import Literal

from attrs import Factory, field, frozen

from skyward.model.events.event_base import SkywardEvent


@frozen(kw_only=True)
class BootstrapPhase(SkywardEvent):
    """
    Report how far one phase of a node's bootstrap is.

    Args:
        phase: Name of the phase: "uv", "apt", "deps" …; "bootstrap" is the whole of it.
        event: What happened to the phase.
        elapsed: How long the phase has taken so far, in seconds.
    """

    phase: str
    event: Literal["started", "completed", "failed"]
    elapsed: float = 0.0


@frozen(kw_only=True)
class BootstrapStarting(BootstrapPhase):
    """Report that the bootstrap of an instance begins."""

    instance_id: str
    phase: str = "bootstrap"
    event: Literal["started", "completed", "failed"] = "started"


@frozen(kw_only=True)
class BootstrapProgress(BootstrapPhase):
    """Report that a bootstrap enters its next phase, which is named by `step`."""

    instance_id: str
    step: str
    phase: str = field(default=Factory(lambda self: self.step, takes_self=True))
    event: Literal["started", "completed", "failed"] = "started"


@frozen(kw_only=True)
class BootstrapCompleted(BootstrapPhase):
    """Report that the bootstrap of an instance is done."""

    instance_id: str
    phase: str = "bootstrap"
    event: Literal["started", "completed", "failed"] = "completed"


@frozen(kw_only=True)
class BootstrapConsole(SkywardEvent):
    """Carry one line that the bootstrap wrote."""

    line: str


@frozen(kw_only=True)
class BootstrapCommand(SkywardEvent):
    """Report which command the bootstrap runs now."""

    command: str


@frozen(kw_only=True)
class BootstrapFailed(SkywardEvent):
    """Report in which phase a bootstrap failed, and the end of what it wrote."""

    phase: str
    error: str
