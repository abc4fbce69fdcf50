"""The lease of a holder of locks, items and places at barriers: a key that expires unless it is renewed."""

from __future__ import annotations

import logging
import threading

from skyward.collections.store_client import StoreClient
from skyward.errors import SkywardError

__all__ = ["LEASE_KEY", "HolderLease"]

LEASE_KEY = "sky:lease:"
"""What the name of a lease begins with; then comes the holder."""

_log = logging.getLogger(__name__)


class HolderLease:
    """
    Renew a holder's lease for as long as its process lives.

    Args:
        store: Has the lease.
        seconds: For how long it lasts; it is renewed three times as often.
    """

    def __init__(self, store: StoreClient, *, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()

    @property
    def milliseconds(self) -> int:
        """Return how long a lease lasts, in milliseconds."""
        return max(1, int(self._seconds * 1000))

    def keep(self) -> None:
        """Begin to renew the lease; scripts that need one write it themselves, so that there is no gap."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._lock:
            if (self._thread is None or not self._thread.is_alive()) and not self._ended.is_set():
                self._thread = threading.Thread(target=self._renew, name="skyward-lease", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Stop renewing the lease, and remove it."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(self._seconds)
            self._store.call("DEL", LEASE_KEY + self._store.address.holder)

    def _renew(self) -> None:
        key = LEASE_KEY + self._store.address.holder
        while not self._ended.wait(self._seconds / 3):
            try:
                # A store that is full renews a lease, but takes no new one.
                if not self._store.call("PEXPIRE", key, self.milliseconds):
                    self._store.call("SET", key, "1", "PX", self.milliseconds)
            except SkywardError as error:
                _log.debug("lease.renewal_failed reason=%r", str(error))
