"""
How a pool behaves, whatever hardware it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.duration import seconds
from skyward.model.fields.log_config import LogConfig, LogLevel
from skyward.model.fields.port import ports
from skyward.model.fields.setting import choice, lasting, optional, positive, suggesting, switch, waiting, whole
from skyward.model.spec.health_checker import HealthChecker
from skyward.model.spec.worker_layout import Executor, PerNode, Worker

__all__ = [
    "ConsoleLike",
    "ConsoleMode",
    "Executor",
    "LogConfig",
    "LogLevel",
    "Options",
    "PerNode",
    "ProviderSelector",
    "SelectionLike",
    "SelectionStrategy",
    "Worker",
    "console_shown",
]

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

ConsoleMode = Literal["rich", "minimal", "log", "silent"]
# The last two are older words for "minimal" and "silent".
ConsoleLike: TypeAlias = bool | ConsoleMode | Literal["spinner", "quiet"]
SelectionStrategy = Literal["cheapest", "first", "available"]
# Gets the providers' views and a spec; returns one view, or several in the order to try.
ProviderSelector: TypeAlias = Callable[[tuple[Any, ...], Any], Any | Sequence[Any]]
SelectionLike: TypeAlias = SelectionStrategy | ProviderSelector

_CONSOLES = ("rich", "minimal", "log", "silent")
_OLDER_CONSOLES: dict[str, ConsoleMode] = {"spinner": "minimal", "quiet": "silent"}


def _selection(value: SelectionLike) -> SelectionLike:
    """Return how providers are chosen from, checked."""
    if callable(value):
        return value
    words = ("cheapest", "first", "available")
    return cast("SelectionStrategy", choice(value, "selection", words, also="a function"))


def console_shown(value: object, parameter: str) -> bool | ConsoleMode:
    """
    Return what is shown while a pool is up, with the older words replaced.

    Args:
        value: True, False, a mode, `"spinner"` or `"quiet"`.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If it is none of these.

    >>> console_shown("spinner", "display")
    'minimal'
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _OLDER_CONSOLES:
        return _OLDER_CONSOLES[value]
    return cast("ConsoleMode", choice(value, parameter, _CONSOLES, also="True or False"))


def _console(value: ConsoleLike) -> bool | ConsoleMode:
    """Return what is shown while the pool is up, checked."""
    return console_shown(value, "console")


def _max_provision_attempts(value: int | None) -> int | None:
    """Return how often a launch is tried, checked."""
    return None if value is None else whole(value, "max_provision_attempts", least=1)


def _max_replacement_attempts(value: int | None) -> int | None:
    """Return how often the start of a node is tried in a pool that has worked, checked."""
    return None if value is None else whole(value, "max_replacement_attempts", least=1)


def _retry_on_interruption(value: int) -> int:
    """Return how often a task is sent again after its node was lost, checked."""
    return whole(value, "retry_on_interruption")


def _worker(instance: object, attribute: object, value: Any) -> None:
    """Refuse what is no `Worker`."""
    if value is not None and not isinstance(value, Worker):
        raise ConfigError(
            f"worker must be a sky.Worker, not {value!r}.", hint="Write worker=sky.Worker(concurrency=4)."
        )


def _logging(instance: object, attribute: object, value: Any) -> None:
    """Refuse what says nothing about the log."""
    if not isinstance(value, (bool, LogConfig)):
        hint = f"Write logging=sky.LogConfig(level={value!r})." if isinstance(value, str) else None
        raise ConfigError(f"logging must be True, False or a sky.LogConfig, not {value!r}.", hint=hint)


def _on_event(instance: object, attribute: object, value: Any) -> None:
    """Refuse a handler that cannot be called."""
    if value is not None and not callable(value):
        raise ConfigError(f"on_event must be a function that takes an event, not {value!r}.")


def _health_checker(instance: object, attribute: object, value: Any) -> None:
    """Refuse what is no `HealthChecker`."""
    if value is not None and not isinstance(value, HealthChecker):
        hint = "Write health_checker=sky.HealthChecker(is_well)."
        raise ConfigError(f"health_checker must be a sky.HealthChecker, not {value!r}.", hint=hint)


def _cluster(instance: object, attribute: Any, value: object) -> None:
    """Refuse what neither joins nodes nor keeps them apart."""
    if value is not None:
        switch(instance, attribute, value)


def _label(value: object, name: str) -> None:
    """Refuse what is no name that every cloud can show, if only in another spelling."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise ConfigError(
            f"{name} must be 1 to 63 letters, digits, '.', '_' and '-', a letter or digit first, not {value!r}.",
            hint='Write for example label="sweep-7".',
        )


def _ticking(instance: object, attribute: Any, value: object) -> None:
    """Refuse an interval of no length."""
    lasting(value, attribute.name)


@suggesting
@frozen(kw_only=True)
class Options:
    """
    Say how a pool behaves, whatever hardware it has.

    All times are in seconds; None leaves a limit to the provider or, for calls, means there is none.

    Args:
        label: What the pool is called in tags, lists, logs and errors; None is its name in `skyward.toml`, or `pool`.
        selection: Which spec to take: `"cheapest"`, `"first"`, `"available"` (the first that has an offer now), or a
            function of the providers and the spec that returns one provider, or several in the order to try.
        worker: How tasks are laid out on a node; None is `Worker()`.
        provision_timeout: How long a launch may take until the instance runs.
        ssh_timeout: How long a machine that runs may take until it accepts an SSH login; None counts that as part of
            making it ready.
        ssh_retry_interval: How long to wait before a machine is dialled again; None waits longer each time.
        bootstrap_timeout: How long making a node ready may take; None is what the image says.
        provision_retry_delay: How long to wait before a failed launch is tried again; None waits longer each time.
        max_provision_attempts: How often a launch is tried until the pool has worked; None is 3 times.
        max_replacement_attempts: How often in a row the start of a node is tried once the pool has worked; after that
            it goes on with one node fewer. None tries for as long as the pool lives, with growing pauses.
        default_compute_timeout: Limit for each call that has none of its own.
        autoscale_cooldown: How long the pool does not shrink after it grew.
        autoscale_idle_timeout: How long a node has nothing to do before the pool gives it up.
        reconcile_tick_interval: How often the provider is asked which machines there still are, while all run; machines
            on their way, or that do not answer, are polled every few seconds. An elastic pool looks at its size as
            often, and once a second at least.
        shutdown_timeout: How long leaving the pool waits until the provider confirms the end of each instance.
        console: What is shown: `"rich"`, `"minimal"`, `"log"` or `"silent"`; True is what fits the terminal, False is
            nothing.
        logging: Where Skyward's own log goes, and whether the pool stores its events and output; True is `LogConfig()`,
            False neither writes nor stores anything.
        cluster: Whether nodes work together over a network of their own. True refuses providers whose machines have
            none, before anything is rented, and nodes that do not reach each other; False has each node work by itself,
            and refuses what joins them; None joins them where a plugin or a function asks for it.
        retry_on_interruption: How often a task is sent again because its node was lost.
        queue_timeout: How long each call may wait until it begins, if it has no limit of its own.
        call_deadline: How long each call may take in all, if it has no deadline of its own: queue, attempts, pauses.
        pool_deadline: How long the pool may be open; then its calls fail, and its nodes are terminated.
        suspect_timeout: How long a node may send nothing, not even a heartbeat, until it is suspected: it gets no new
            calls, and those that run there are begun elsewhere as well, as far as `retry_on_interruption` lets them.
            None suspects no node.
        lost_timeout: How long a node may send nothing until it counts as lost and is replaced; one that is heard before
            is used again. Where all nodes are silent, so that this machine may be the one that is cut off, it is `ttl`.
        on_event: Called with each event, in a thread of its own.
        collect_metrics: Whether nodes measure what the image's `metrics` say; False measures nothing.
        ports: TCP ports of the head node that are reached on the client's 127.0.0.1 while the pool is up: each a number
            that is the same on both sides, a pair `(remote, local)`, or the text `"LOCAL:REMOTE"`.
        budget: The most that the whole pool may cost, in USD; None for no limit.
        linger: How long the machines wait, once the pool was left, for a pool of the same spec and image, which is
            ready in seconds then; they are billed meanwhile, and end by themselves.
        lease: How long the nodes go on with their calls if this program dies, and `sky.attach` goes on with the pool;
            they are billed meanwhile, and end by themselves. None has them end after `ttl`, with all that they have.
        warm_image: Whether machines boot from an image of a machine that was made ready before for the same image and
            plugins; where the provider has none yet, it is made of the first node, and kept until it is deleted.
        health_checker: Checks nodes while they are used, and has those replaced that fail again and again.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Options(console="quiet").console
    'silent'
    """

    label: str | None = field(default=None, validator=optional(_label))
    selection: SelectionLike = field(default="cheapest", converter=_selection)
    worker: Worker | None = field(default=None, validator=_worker)
    provision_timeout: float | None = field(default=None, validator=optional(lasting))
    ssh_timeout: float | None = field(default=None, validator=optional(lasting))
    ssh_retry_interval: float | None = field(default=None, validator=optional(lasting))
    bootstrap_timeout: float | None = field(default=None, validator=optional(lasting))
    provision_retry_delay: float | None = field(default=None, validator=optional(seconds))
    max_provision_attempts: int | None = field(default=None, converter=_max_provision_attempts)
    max_replacement_attempts: int | None = field(default=None, converter=_max_replacement_attempts)
    default_compute_timeout: float | None = field(default=None, validator=optional(lasting))
    autoscale_cooldown: float = field(default=30.0, validator=waiting)
    autoscale_idle_timeout: float = field(default=60.0, validator=waiting)
    reconcile_tick_interval: float = field(default=15.0, validator=_ticking)
    shutdown_timeout: float = field(default=120.0, validator=waiting)
    console: bool | ConsoleMode = field(default=True, converter=_console)
    logging: bool | LogConfig = field(default=True, validator=_logging)
    cluster: bool | None = field(default=None, validator=_cluster)
    retry_on_interruption: int = field(default=3, converter=_retry_on_interruption)
    queue_timeout: float | None = field(default=None, validator=optional(lasting))
    call_deadline: float | None = field(default=None, validator=optional(lasting))
    pool_deadline: float | None = field(default=None, validator=optional(lasting))
    suspect_timeout: float | None = field(default=15.0, validator=optional(lasting))
    lost_timeout: float = field(default=60.0, validator=_ticking)
    on_event: Callable[[Any], object] | None = field(default=None, validator=_on_event)
    collect_metrics: bool = field(default=True, validator=switch)
    ports: tuple[tuple[int, int], ...] = field(default=(), converter=ports)
    budget: float | None = field(default=None, validator=optional(positive))
    linger: float = field(default=0.0, validator=waiting)
    lease: float | None = field(default=None, validator=optional(lasting))
    warm_image: bool = field(default=False, validator=switch)
    health_checker: HealthChecker | None = field(default=None, validator=_health_checker)

    @property
    def workers(self) -> Worker:
        """
        Return how tasks are laid out on a node.

        >>> Options().workers == Worker()
        True
        """
        return self.worker or Worker()

    @property
    def log_config(self) -> LogConfig | None:
        """
        Return where Skyward's own log goes; None where it is switched off.

        >>> Options(logging=False).log_config is None
        True
        """
        if isinstance(self.logging, LogConfig):
            return self.logging
        return LogConfig() if self.logging else None
