"""Feed the iterators that a call takes as arguments, item by item, from the client to the node."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

from skyward.engine.calls.call import Call
from skyward.engine.nodes.node_link import NodeLink
from skyward.engine.nodes.outflow import Outflow
from skyward.link.payload import Payload
from skyward.link.payload_making import dump
from skyward.node.worker.streams import WINDOW_BYTES, Window


class Feeder:
    """
    Iterate in threads of its own, no further ahead of the node than a window.

    Args:
        sources: One iterator for each input stream, in order.
        post: Has something sent to the node that runs the call, in the engine's loop.
    """

    def __init__(
        self, sources: tuple[Iterator[Any], ...], post: Callable[[Call, Callable[[NodeLink], None]], None]
    ) -> None:
        self._sources = sources
        self._post = post
        self._windows = [Window() for _ in sources]
        self._changed = threading.Condition()
        self._stopped = False
        # Bytes of items that the loop has yet to hand to the link.
        self._posted = 0

    def start(self, call: Call, outflow: Outflow) -> None:
        """
        Begin to feed a call that was sent to a node.

        Args:
            call: The call.
            outflow: How far the node is behind.
        """
        outflow.join(self)
        for index, source in enumerate(self._sources):
            context = contextvars.copy_context()
            threading.Thread(
                target=context.run, args=(self._feed, call, index, source, outflow), name="skyward-feeder", daemon=True
            ).start()

    def acknowledged(self, stream: int, items: int) -> None:
        """Record that the node consumed items."""
        with self._changed:
            if stream < len(self._windows):
                self._windows[stream].acknowledged(items)
            self._changed.notify_all()

    def wake(self) -> None:
        """Look again whether items may be sent."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop: the call is over."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _feed(self, call: Call, index: int, source: Iterator[Any], outflow: Outflow) -> None:
        failure = b""
        try:
            while self._wait(index, outflow):
                item = next(source, _END)
                if item is _END:
                    break
                payload = dump(item)
                with self._changed:
                    self._windows[index].sent(payload.size)
                    self._posted += payload.size
                self._post(call, lambda link, payload=payload: self._send(link, call, index, payload))  # type: ignore[misc]
        except BaseException as error:
            from skyward.link.failure import dump_failure

            failure = dump_failure(error)
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()
        self._post(call, lambda link: link.send_end(call, index, failure))

    def _send(self, link: NodeLink, call: Call, index: int, payload: Payload) -> None:
        link.send_item(call, index, payload)
        with self._changed:
            self._posted -= payload.size
            self._changed.notify_all()

    def _wait(self, index: int, outflow: Outflow) -> bool:
        with self._changed:
            while not self._stopped and (outflow.full or self._posted >= WINDOW_BYTES or not self._windows[index].open):
                self._changed.wait()
            return not self._stopped


_END = object()
