"""How a worker learns where the store of the collections is: when a task first asks, and again when it is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from skyward.errors import ProtocolError, SkywardError, TransportError
from skyward.link import store_said
from skyward.link.frames import Kind, encode
from skyward.link.store_said import STARTS_WITHIN, StoreGone, StorePlace, Where

__all__ = ["ANSWERED_WITHIN", "StoreLookup"]

ANSWERED_WITHIN: Final = STARTS_WITHIN + 60.0
"""Seconds that a task waits for the client's answer; it comes sooner, also if no store can be started."""

_INTERRUPTIBLE: Final = 0.5


class _Question:
    """What tasks wait for."""

    __slots__ = ("answer", "there")

    def __init__(self) -> None:
        self.there = threading.Event()
        self.answer: StorePlace | SkywardError | None = None


class StoreLookup:
    """
    Ask the agent for the store's place; tasks wait for the answer in their own threads.

    Args:
        send: Sends a frame to the agent.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._place: StorePlace | None = None
        self._question: _Question | None = None

    def find(self, within: float = ANSWERED_WITHIN) -> StorePlace:
        """
        Return where the store is; it is started if it is not there.

        Args:
            within: Seconds to wait, at most.

        Raises:
            SkywardError: If there is none.
            TransportError: If the client does not answer in time.
        """
        if (place := self._place) is not None:
            return place
        question = self._asked()
        deadline = time.monotonic() + within
        # A thread that sleeps for long cannot be interrupted.
        while not question.there.wait(min(_INTERRUPTIBLE, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                self._forget(question)
                raise TransportError(
                    f"The client did not say within {within:g} s where the store of the collections is: it may be away."
                )
        if isinstance(question.answer, StorePlace):
            return question.answer
        assert question.answer is not None
        raise question.answer

    def received(self, body: bytes) -> None:
        """
        Take a STORE frame of the agent's; harmless if nothing waits for it any more.

        Raises:
            ProtocolError: If it is malformed.
        """
        said = store_said.decode(body)
        with self._lock:
            if isinstance(said, StoreGone):
                if self._place is not None and self._place.generation == said.generation:
                    self._place = None
                return
            if not isinstance(said, StorePlace | SkywardError):
                raise ProtocolError("An agent asked a worker where the store is.")
            self._place = said if isinstance(said, StorePlace) else None
            question, self._question = self._question, None
            if question is not None:
                question.answer = said
                question.there.set()

    def _asked(self) -> _Question:
        with self._lock:
            if (question := self._question) is not None:
                return question
            question = self._question = _Question()
        try:
            self._send(encode(Kind.STORE, Where().encode()))
        except BaseException:
            self._forget(question)
            raise
        return question

    def _forget(self, question: _Question) -> None:
        with self._lock:
            if self._question is question:
                self._question = None
