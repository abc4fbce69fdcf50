"""A holder of items, locks and places at barriers: one attempt of a task, or the client."""

from __future__ import annotations

from attrs import frozen

from skyward.collections.consumer import ConsumerNames
from skyward.collections.holder_lease import HolderLease
from skyward.collections.store_client import StoreClient

__all__ = ["Holder"]


@frozen(eq=False)
class Holder:
    """
    Say for which holder the store is asked, and for which of its threads and coroutines.

    Args:
        store: Has what it holds.
        lease: Kept while it holds something; what it holds is released with it.
        consumers: Names its threads and coroutines.
    """

    store: StoreClient
    lease: HolderLease
    consumers: ConsumerNames

    @property
    def name(self) -> str:
        """Return what the store knows it by."""
        return self.store.address.holder

    def consumer(self) -> int:
        """Return the number of the thread or coroutine that calls."""
        return self.consumers.current()
