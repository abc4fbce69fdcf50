"""The collections of a pool at its client: made when the program first uses one, finished when the pool is left."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyward.engine.store.pool_store import PoolStore, check_joined

if TYPE_CHECKING:
    from skyward.collections.named_collections import Collections
    from skyward.collections.store_address import StoreAddress
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.options import Options
    from skyward.model.spec.trust_setting import Data

__all__ = ["ClientCollections"]

_log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds for which the client connects again to a store that it does not reach."""


class ClientCollections:
    """
    Give the program the collections of its pool; used from any of its threads.

    Args:
        engine: The loop that the store lives in.
        store: The store.
        options: The pool's.
        pool: Name of the pool.
        trust: Returns what of the values is opened as data; None opens anything.
    """

    def __init__(
        self, engine: EngineLoop, store: PoolStore, options: Options, pool: str, trust: Callable[[], Data | None]
    ) -> None:
        self._engine = engine
        self._store = store
        self._options = options
        self._pool = pool
        self._trust = trust
        self._holder = f"client-{secrets.token_hex(8)}"
        self._made: Collections | None = None
        self._making = threading.Lock()

    def get(self) -> Collections:
        """
        Return them; nothing is started before one of them is used.

        Raises:
            UsageError: If the pool was opened with `cluster=False`.
        """
        check_joined(self._options, self._pool)
        with self._making:
            if self._made is None:
                from skyward.collections.named_collections import Collections

                self._made = Collections(self._address, patience=PATIENCE, trust=self._trust())
            return self._made

    def finish(self, *, ok: bool) -> None:
        """
        Finish what the program used of them; harmless if it used none.

        Args:
            ok: Whether the pool is left in good order; if not, what was taken out of queues is put back.
        """
        with self._making:
            made, self._made = self._made, None
        if made is not None:
            try:
                made.finish(ok)
            except Exception as error:
                _log.warning("What the client used of its pool's collections could not be released: %s", error)

    def _address(self) -> StoreAddress:
        from skyward.collections.store_address import StoreAddress

        place = self._engine.run(self._store.for_client())
        return StoreAddress(
            path=place.path, password=place.password, generation=place.generation, holder=self._holder, task=""
        )
