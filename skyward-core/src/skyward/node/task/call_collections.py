"""The collections of a running call: made when it first uses one, finished when it ends."""

from __future__ import annotations

import logging
import os
import threading
from functools import cache
from typing import TYPE_CHECKING

from skyward.errors import NoPoolError
from skyward.link.messages import task_of
from skyward.node.task.task_context import owner

if TYPE_CHECKING:
    from skyward.collections.named_collections import Collections
    from skyward.collections.store_address import StoreAddress
    from skyward.collections.store_connections import StoreConnections
    from skyward.node.task.task_context import TaskContext

__all__ = ["finish", "task_collections"]

_log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds for which a task connects again to a store that it does not reach: the link of its node may be away."""

_making = threading.Lock()


@cache
def _connections() -> StoreConnections:
    """Return the connections of this process, which its tasks find one after the other."""
    from skyward.collections.store_connections import StoreConnections

    return StoreConnections()


def task_collections() -> Collections:
    """
    Return the collections of the call that the calling thread works for.

    Raises:
        NoPoolError: If it works for none.

    >>> task_collections()
    Traceback (most recent call last):
        ...
    skyward.errors.NoPoolError: A collection is used in code that runs on a node, but not in a task...
    """
    context = owner()
    if context is None:
        raise NoPoolError(
            "A collection is used in code that runs on a node, but not in a task, and no pool is open there.",
            hint="Use it in the task itself, or in a thread that its context was copied to.",
        )
    with _making:
        if context.collections is None:
            from skyward.collections.named_collections import Collections

            trust = None
            if context.data:
                from skyward.model.spec.trust_setting import DATA

                # What another node wrote is not run here.
                trust = DATA
            context.collections = Collections(
                _Address(context), patience=PATIENCE, trust=trust, connections=_connections()
            )
        made: Collections = context.collections
    return made


def finish(context: TaskContext, *, ok: bool) -> None:
    """
    Finish the collections of a call that has ended, if it used any.

    What could not be acknowledged is delivered again, so a store that is gone by now fails no call.

    Args:
        context: The call's.
        ok: Whether it has a result.
    """
    if context.collections is None:
        return
    try:
        context.collections.finish(ok)
    except Exception as error:
        _log.warning("What the call used of its pool's collections could not be released: %s", error)


class _Address:
    """
    Find the store for one attempt of a task.

    Args:
        context: The attempt's.
    """

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._holder = os.urandom(8).hex()

    def __call__(self) -> StoreAddress:
        from skyward.collections.store_address import StoreAddress

        place = self._context.store()
        return StoreAddress(
            path=place.path,
            password=place.password,
            generation=place.generation,
            holder=self._holder,
            task=str(task_of(self._context.call_id)),
        )
