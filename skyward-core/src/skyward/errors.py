"""
Every error that Skyward itself raises.

    SkywardError
    ├─ ConfigError          change your code or settings (also a ValueError)
    │   ├─ UsageError       an operator or call used in a way that has no meaning (also a TypeError)
    │   ├─ NotInstalledError a name whose distribution is not installed (also an AttributeError)
    │   ├─ NoPoolError      `sky` used as a target where no pool is open
    │   └─ PoolClosedError  a pool used before it was opened or after it was closed
    ├─ BudgetExceededError  raise the budget, or do less
    ├─ PoolEndedError       the pool was ended by another program; open a new one
    ├─ PoolDeadlineError    the pool was open for as long as it may be (also a TimeoutError)
    ├─ CredentialsError     log in, or fix the key
    │   └─ NoCredentialsError
    ├─ OfferError           try another offer
    │   ├─ CapacityError
    │   ├─ QuotaError
    │   └─ NoAvailableProviderError
    │       └─ AllProvidersFailedError
    ├─ NodeError            the node is replaced
    │   ├─ ProvisionError
    │   │   └─ LeftBehindError  end it by hand
    │   ├─ TransportError
    │   │   ├─ ProtocolError
    │   │   ├─ UnreachableError
    │   │   └─ HostKeyError
    │   └─ NodeLostError
    ├─ TaskError            a task failed without raising
    │   ├─ WorkerDiedError
    │   ├─ TaskTimeoutError (also a TimeoutError)
    │   ├─ QueueTimeoutError a call that did not begin in time (also a TimeoutError)
    │   ├─ CallDeadlineError a call that was not answered by its deadline (also a TimeoutError)
    │   ├─ HangError        a broadcast whose ranks wait for each other
    │   ├─ StateLostError   an object of a decorated class whose process has ended
    │   ├─ WorkerSpentError a worker process that had to be replaced before the task began
    │   ├─ ResultError      a result that could not travel
    │   └─ RemoteError      an exception that could not travel
    ├─ CollectionError      a shared collection that cannot do what it was asked for
    │   ├─ StoreLostError   its store is gone, out of reach, or a new one that is empty
    │   ├─ StoreFullError   its store has no memory or disk left
    │   ├─ LockNotOwnedError a lock released without being held (also a RuntimeError)
    │   ├─ LockTimeoutError (also a TimeoutError)
    │   └─ BarrierBrokenError a barrier whose round cannot be completed (also a threading.BrokenBarrierError)
    ├─ RefError             a value that was put and is not where it is needed; put it again
    ├─ StorageError         an object store refused or failed; bucket, key and endpoint are attributes
    │   ├─ NoSuchBucketError
    │   ├─ NoSuchKeyError
    │   ├─ AccessDeniedError the keys are refused, or lack a permission (also a CredentialsError)
    │   ├─ ChecksumError    bytes that arrived are not those that were sent
    │   └─ StorageUnavailableError no answer, or none but failures, as often as it was asked
    ├─ CheckpointError      a checkpoint that could not be saved or loaded; earlier versions are as they were
    ├─ SerializationError   an argument or function that cannot be sent (also a TypeError and a PicklingError)
    └─ PluginError          report it to the plugin's author

What the user's function raised is raised again as itself; this tree is for everything else.
Each class takes exactly one positional argument, the message, because errors cross processes.
Facts are keyword arguments and attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pickle import PicklingError
from threading import BrokenBarrierError
from typing import Any, Literal

from skyward.plain import plain_text, redacted

Limited = Literal["region", "kind", "market"]
"""Scopes of a limit besides the whole account."""

LIMITED: tuple[Limited, ...] = ("region", "kind", "market")
"""The scope of a limit that names none."""


class SkywardError(Exception):
    """
    Base of every error that Skyward raises itself.

    Args:
        message: What failed, where, why as far as known, and what to do next.
        provider: Name of the provider concerned.
        pool: Name of the pool concerned.
        node: Index of the node concerned.
        hint: What to do next, printed after the message.

    >>> str(SkywardError("Node 3 is gone.", node=3, hint="Open a new pool."))
    'Node 3 is gone. Open a new pool.'
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        pool: str | None = None,
        node: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.pool = pool
        self.node = node
        self.hint = hint

    def __str__(self) -> str:
        # It may hold text of clouds and nodes, and a password that the user wrote.
        return redacted(plain_text(f"{self.message} {self.hint}" if self.hint else self.message))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.__dict__))


def _rebuild(cls: type[SkywardError], message: str, state: dict[str, Any]) -> SkywardError:
    error = cls(message)
    error.__dict__.update(state)
    return error


class ConfigError(SkywardError, ValueError):
    """Report a setting or value that has to be changed by the user."""


class UsageError(ConfigError, TypeError):
    """Report an operator or call used in a way that has no meaning."""


class NotInstalledError(ConfigError, AttributeError):
    """Report a public name whose distribution is not installed."""


class NoPoolError(ConfigError):
    """Report that `sky` was used as a target outside any pool."""


class PoolClosedError(ConfigError):
    """Report that a pool was used before it was opened or after it was closed."""


class BudgetExceededError(SkywardError):
    """
    Report that a pool has used up its budget, or that it would by renting what it needs.

    Args:
        message: As for `SkywardError`.
        budget: What the pool might cost, in USD.
        cost: What it has cost, or would have cost at least, in USD.
    """

    def __init__(self, message: str, *, budget: float = 0.0, cost: float = 0.0, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.budget = budget
        self.cost = cost


class PoolEndedError(SkywardError):
    """Report that a pool was ended by another program, such as `sky down`; nothing is rented in its place."""


class PoolDeadlineError(SkywardError, TimeoutError):
    """Report that a pool was open for as long as `pool_deadline` lets it; its nodes were terminated."""


class CredentialsError(SkywardError):
    """Report credentials that are missing, refused or about to run out."""


class NoCredentialsError(CredentialsError):
    """Report that nothing says which account is to be used: the provider was never set up here."""


class OfferError(SkywardError):
    """Report that an offer could not be had; another one may do."""


class CapacityError(OfferError):
    """Report that the provider has no machine of this kind left now."""


class QuotaError(OfferError):
    """
    Report that a limit of the account does not allow a machine.

    Args:
        message: As for `SkywardError`.
        of: What the limit is of, besides the account: `"region"`, `"kind"` (machines with the same accelerators, or
            those without any) and `"market"` (spot or on demand). What is alike in all of these is not asked for
            again; empty for a limit of the account as a whole.
    """

    def __init__(self, message: str, *, of: Collection[Limited] = LIMITED, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.of = of


class NoAvailableProviderError(OfferError):
    """Report that no provider sells anything that meets the requirements."""


class AllProvidersFailedError(NoAvailableProviderError):
    """
    Report that every provider was tried and failed.

    Args:
        message: As for `SkywardError`.
        reasons: One `(provider, reason)` for each one tried, in order.
    """

    def __init__(self, message: str, *, reasons: tuple[tuple[str, str], ...] = (), **facts: Any) -> None:
        super().__init__(message, **facts)
        self.reasons = reasons


class NodeError(SkywardError):
    """Report trouble with a node; the pool replaces it where it can."""


class ProvisionError(NodeError):
    """Report that a node could not be made ready."""


class LeftBehindError(ProvisionError):
    """
    Report machines that a pool could not end when it was left, and that may go on being billed.

    Args:
        message: As for `SkywardError`.
        instances: Their ids, as the provider calls them.
        result: What the function returned that the pool was opened for by `sky.pool`.
    """

    def __init__(self, message: str, *, instances: tuple[str, ...] = (), result: Any = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.instances = instances
        self.result = result


class TransportError(NodeError):
    """Report that bytes could not be carried to or from a node."""


class ProtocolError(TransportError):
    """Report bytes on a link that are no frames of ours, or of another version."""


class UnreachableError(TransportError):
    """Report a machine that did not answer; it may at another time."""


class HostKeyError(TransportError):
    """Report a machine that is not the one we know, or none that we know; nothing was sent to it."""


class NodeLostError(NodeError):
    """Report that a node went away with work on it."""


class TaskError(SkywardError):
    """
    Report a task that failed without raising.

    Args:
        message: As for `SkywardError`.
        function: Name of the function that was called.
        output: The last lines that the worker wrote.
    """

    def __init__(
        self, message: str, *, function: str | None = None, output: tuple[str, ...] = (), **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.function = function
        self.output = output


class WorkerDiedError(TaskError):
    """
    Report that the worker process died while the task ran in it.

    Args:
        message: As for `SkywardError`.
        exit_code: The code the process exited with, if it exited.
        signal: The signal's name that ended the process, if one did.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, signal: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.exit_code = exit_code
        self.signal = signal


class TaskTimeoutError(TaskError, TimeoutError):
    """
    Report that a task ran longer than its timeout.

    Args:
        message: As for `SkywardError`.
        timeout: The limit that was passed, in seconds.
        stack: Where the task was when its time was over: the innermost place first, then those in the user's own code,
            and where its asyncio tasks waited. Empty where its node could not tell.
    """

    def __init__(
        self, message: str, *, timeout: float | None = None, stack: tuple[str, ...] = (), **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.timeout = timeout
        self.stack = stack


class QueueTimeoutError(TaskError, TimeoutError):
    """Report a call that no node began within its limit: more nodes or slots would have."""


class CallDeadlineError(TaskError, TimeoutError):
    """Report a call that had no answer by its deadline, whatever of queue, attempts and pauses took the time."""


class HangError(TaskError):
    """
    Report a broadcast in which no rank got any further.

    Args:
        message: As for `SkywardError`.
        stacks: Where the threads of each rank were, by rank.
    """

    def __init__(self, message: str, *, stacks: Mapping[int, str] | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.stacks = stacks


class WorkerSpentError(TaskError):
    """Report a worker process whose state rules out what a task needs; raised before the task has begun."""


class StateLostError(TaskError):
    """Report an object of a decorated class that is gone with its process, and is not to be rebuilt."""


class ResultError(TaskError):
    """Report a result that could not be pickled on the node or unpickled here."""


class RemoteError(TaskError):
    """
    Report an exception that could not travel as itself.

    Args:
        message: As for `SkywardError`.
        type_name: Qualified name of the exception's class on the node.
        traceback: The traceback on the node, as text.
    """

    def __init__(self, message: str, *, type_name: str = "", traceback: str = "", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.type_name = type_name
        self.traceback = traceback


class SerializationError(SkywardError, PicklingError, TypeError):
    """
    Report an argument or a function that cannot be sent to a node.

    Args:
        message: As for `SkywardError`.
        argument: Name of the argument, or of the variable the function closes over.
        path: Where in it the object to blame is, as Python would write it.
    """

    def __init__(self, message: str, *, argument: str | None = None, path: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.argument = argument
        self.path = path


class CollectionError(SkywardError):
    """Report a shared collection that cannot do what it was asked for."""


class StoreLostError(CollectionError):
    """Report that the store of a pool's collections is gone, cannot be reached, or is a new one that is empty."""


class StoreFullError(CollectionError):
    """Report that the store of a pool's collections has no memory or disk left."""


class LockNotOwnedError(CollectionError, RuntimeError):
    """Report a lock that was released by a thread or task that does not hold it, or not any more."""


class LockTimeoutError(CollectionError, TimeoutError):
    """
    Report a lock that was not free in time.

    Args:
        message: As for `SkywardError`.
        timeout: The limit that was passed, in seconds.
    """

    def __init__(self, message: str, *, timeout: float | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.timeout = timeout


class BarrierBrokenError(CollectionError, BrokenBarrierError):
    """Report a barrier whose round cannot be completed: a participant died, gave up or ran out of time."""


class RefError(SkywardError):
    """Report a `Ref` that was freed, belongs to another pool, or was pickled otherwise than by a call of its pool."""


class StorageError(SkywardError):
    """
    Report that an object store refused what it was asked for, or failed.

    Args:
        message: As for `SkywardError`.
        endpoint: Address of the store.
        bucket: The bucket concerned.
        key: The object concerned, or what its key begins with.
        code: The store's own code of the error; empty if there was no answer.
    """

    def __init__(
        self,
        message: str,
        *,
        endpoint: str | None = None,
        bucket: str | None = None,
        key: str | None = None,
        code: str = "",
        **facts: Any,
    ) -> None:
        super().__init__(message, **facts)
        self.endpoint = endpoint
        self.bucket = bucket
        self.key = key
        self.code = code


class NoSuchBucketError(StorageError):
    """Report a bucket that is not there."""


class NoSuchKeyError(StorageError):
    """Report an object that is not there."""


class AccessDeniedError(StorageError, CredentialsError):
    """Report keys that an object store does not accept, or that lack a permission."""


class ChecksumError(StorageError):
    """Report bytes that arrived as others than were sent."""


class StorageUnavailableError(StorageError):
    """Report an object store that gave no answer, or none but failures, as often as it was asked."""


class CheckpointError(SkywardError):
    """
    Report a checkpoint that could not be saved or loaded; its earlier versions are as they were.

    Args:
        message: As for `SkywardError`.
        address: What the checkpoint is called where it is kept.
        errno: The system's number of the failure, such as `errno.ENOSPC`; None where there is none.
    """

    def __init__(self, message: str, *, address: str = "", errno: int | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.address = address
        self.errno = errno


class PluginError(SkywardError):
    """
    Report a plugin that failed in one of its hooks.

    Args:
        message: As for `SkywardError`.
        plugin: Name of the plugin.
        hook: Name of the hook.
    """

    def __init__(self, message: str, *, plugin: str | None = None, hook: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.plugin = plugin
        self.hook = hook
