"""Whether a call or the start of a node that failed is tried again."""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import NamedTuple

from skyward.errors import (
    BudgetExceededError,
    ConfigError,
    CredentialsError,
    OfferError,
    PluginError,
    PoolEndedError,
    ProvisionError,
    SkywardError,
    StorageError,
)
from skyward.model.spec.retry_setting import LONGEST, Retry


class Failure(Enum):
    """Why an attempt came to nothing."""

    FAILED = "failed"
    """The function raised, ran too long, or took its worker down."""
    NODE_LOST = "node lost"
    """The node went away, through no fault of the call."""
    WORKER_SPENT = "worker spent"
    """The call has not begun, because its worker process had to be replaced first."""


class Decision(NamedTuple):
    """Whether to try again, and what is left of either kind of attempt then."""

    again: bool
    retries: int
    interruptions: int
    delay: float = 0.0
    """Seconds until then."""


RENEWALS = 2
"""How often a call or a broadcast begins again because worker processes had to be replaced for it."""


def decide(
    failure: Failure,
    *,
    cancelled: bool,
    retries: int,
    interruptions: int,
    attempt: int = 1,
    retry: Retry | None = None,
    draw: float = 0.5,
    left: float = inf,
) -> Decision:
    """
    Decide on the next attempt.

    Args:
        failure: What became of this one.
        cancelled: Whether another attempt is not wanted, or not after this failure.
        retries: Attempts left after failures of the call itself.
        interruptions: Attempts left after losses of the node.
        attempt: Which one this was, from 1.
        retry: How long to wait after failures of the call itself; None for not at all.
        draw: A number drawn at random from 0 to 1.
        left: Seconds until the deadline of the call: no attempt is begun that cannot end before.

    >>> decide(Failure.FAILED, cancelled=False, retries=1, interruptions=3)
    Decision(again=True, retries=0, interruptions=3, delay=0.0)
    >>> decide(Failure.FAILED, cancelled=False, retries=0, interruptions=3).again
    False
    >>> decide(Failure.WORKER_SPENT, cancelled=False, retries=0, interruptions=0, attempt=1)
    Decision(again=True, retries=0, interruptions=0, delay=0.0)
    """
    if cancelled or left <= 0:
        return Decision(False, retries, interruptions)
    if failure is Failure.WORKER_SPENT:
        return Decision(attempt <= RENEWALS, retries, interruptions)
    if failure is Failure.NODE_LOST:
        return Decision(interruptions > 0, retries, max(0, interruptions - 1))
    if not retries:
        return Decision(False, 0, interruptions)
    delay = delay_before(retry, retry.times - retries + 1, draw) if retry is not None else 0.0
    if delay >= left:
        return Decision(False, retries, interruptions)
    return Decision(True, retries - 1, interruptions, delay)


def delay_before(retry: Retry, failures: int, draw: float) -> float:
    """
    Return the seconds to wait before a call is tried again.

    Args:
        retry: What the user asks for.
        failures: How many attempts have failed, this one among them; losses of nodes do not count.
        draw: A number drawn at random from 0 to 1, which the jitter goes by.

    >>> [delay_before(Retry(9, delay=2.0, jitter=0.5), failures, 0.5) for failures in (1, 2, 3, 5000)]
    [2.0, 4.0, 8.0, 3600.0]
    >>> [delay_before(Retry(9, delay=2.0, jitter=0.5), 1, draw) for draw in (0.0, 1.0)]
    [1.0, 3.0]
    """
    try:
        delay = retry.delay * retry.backoff ** (failures - 1)
    except OverflowError:
        delay = LONGEST if retry.delay else 0.0
    return min(LONGEST, min(LONGEST, delay) * (1 + retry.jitter * (2 * draw - 1)))


_LONGEST_PAUSE = 60.0


def retry_pause(failures: int) -> float:
    """
    Return the seconds to wait before machines are asked for again that could not be had.

    Args:
        failures: How often they could not be had, in a row.

    >>> [retry_pause(failures) for failures in (0, 1, 2, 10)]
    [0.0, 2.0, 4.0, 60.0]
    """
    return min(_LONGEST_PAUSE, 2.0**failures) if failures else 0.0


LEAST_REPLACEMENT_PAUSE = 1.0
"""Seconds that a pool which has worked waits at least before it asks again, after three failures."""

LONGEST_REPLACEMENT_PAUSE = 300.0
"""Seconds after which a pool that has worked asks again for the machine of a node, however often there was none."""


def replacement_pause(failures: int, draw: float) -> float:
    """
    Return the seconds to wait before a pool that has worked asks again for a node that it could not start.

    Args:
        failures: How often the node could not be started, in a row.
        draw: A number drawn at random from 0 to 1, which spreads pools that lost their nodes at the same time.

    >>> [replacement_pause(failures, 0.5) for failures in (0, 1, 2, 5, 2000)]
    [0.0, 2.0, 4.0, 32.0, 300.0]
    >>> [round(replacement_pause(2000, draw)) for draw in (0.0, 1.0)]
    [240, 360]
    """
    if not failures:
        return 0.0
    return float(min(LONGEST_REPLACEMENT_PAUSE, 2.0 ** min(failures, 20))) * (0.8 + 0.4 * draw)


def launch_pause(
    failures: int, delay: float | None, *, refused: bool, proven: bool = False, draw: float = 0.5
) -> float:
    """
    Return the seconds to wait before machines are asked for: none for nodes that failed never.

    Args:
        failures: How often the worst of the nodes failed to start in a row.
        delay: What the user asks for; None leaves it to us.
        refused: Whether machines could not be had, so that asking again at once changes nothing.
        proven: Whether the pool has worked, and goes on trying.
        draw: A number drawn at random from 0 to 1.

    >>> launch_pause(2, None, refused=True), launch_pause(2, 7.0, refused=False), launch_pause(0, 7.0, refused=True)
    (4.0, 7.0, 0.0)
    >>> launch_pause(2, None, refused=False), launch_pause(2, None, refused=False, proven=True)
    (0.0, 4.0)
    """
    if delay is not None:
        # A pool that goes on trying does not do so without a pause, whatever is asked for.
        least = LEAST_REPLACEMENT_PAUSE if proven and failures > 3 else 0.0
        return max(delay, least) if failures else 0.0
    if proven:
        return replacement_pause(failures, draw)
    return retry_pause(failures) if refused else 0.0


_FINAL = (BudgetExceededError, ConfigError, CredentialsError, PluginError, PoolEndedError, StorageError)
"""Errors that the next machine would raise as well: of volumes, those of their buckets."""


def worth_another_start(error: Exception, *, again: bool, proven: bool = False) -> bool:
    """
    Return whether a node that could not be started is started again: not where that changes nothing.

    Args:
        error: Why it was not started.
        again: Whether machines are asked for again that could not be had.
        proven: Whether the pool has worked, so that what fails in a provider or plugin may work again.

    >>> worth_another_start(ConfigError("nodes must be at least 1."), again=True)
    False
    >>> worth_another_start(OSError(), again=False)
    True
    """
    if isinstance(error, OfferError):
        return again
    if proven and isinstance(error, PluginError):
        return True
    return not isinstance(error, _FINAL)


def start_failure(error: Exception) -> SkywardError:
    """
    Return why a node could not be started as an error of ours.

    Args:
        error: What was raised.

    >>> str(start_failure(OSError("no room")))
    'OSError: no room'
    """
    if isinstance(error, SkywardError):
        return error
    failure = ProvisionError(f"{type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
