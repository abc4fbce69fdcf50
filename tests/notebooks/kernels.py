"""A Jupyter kernel, and the cells that are run in it."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

WITHIN_S = 60.0


class Kernel:
    """Run cells as a notebook does, and keep what the kernel sends."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client
        self.messages: list[dict[str, Any]] = []

    def begin(self, code: str, *, notebook: bool = True) -> str:
        """Have a cell run, and return the id of its message; without a notebook, as a console of text would."""
        session = self.client.session
        content = {
            "code": textwrap.dedent(code),
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": True,
            "stop_on_error": False,
        }
        message = session.msg("execute_request", content, metadata={"cellId": "a"} if notebook else {})
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def run(self, code: str, *, notebook: bool = True) -> str:
        """Run a cell to its end, and return its id; an error in it is raised here."""
        cell = self.begin(code, notebook=notebook)
        error = self.ended(cell)
        assert error is None, error
        return cell

    def ended(self, cell: str) -> str | None:
        """Wait for the end of a cell, and return what it raised."""
        self.until(lambda: self._is_idle(cell))
        errors = [one["content"] for one in self.of(cell, "error")]
        return f"{errors[0]['ename']}: {errors[0]['evalue']}\n" + "\n".join(errors[0]["traceback"]) if errors else None

    def until(self, there: Callable[[], bool]) -> None:
        """Take messages until something holds."""
        end = time.monotonic() + WITHIN_S
        while not there():
            left = end - time.monotonic()
            assert left > 0, [(one["msg_type"], one["content"]) for one in self.messages[-20:]]
            try:
                self.messages.append(self.client.get_iopub_msg(timeout=min(left, 0.5)))
            except Empty:
                continue

    def of(self, cell: str, kind: str) -> list[dict[str, Any]]:
        """Return the messages of a kind that belong to a cell."""
        return [one for one in self.messages if one["msg_type"] == kind and _parent(one) == cell]

    def text(self, cell: str, stream: str = "stdout") -> str:
        """Return what is written under a cell."""
        return "".join(one["content"]["text"] for one in self.of(cell, "stream") if one["content"]["name"] == stream)

    def shown(self, cell: str) -> list[dict[str, str]]:
        """Return what the display of a cell has shown, first to last."""
        first = self.of(cell, "display_data")
        names = {one["content"]["transient"].get("display_id") for one in first} - {None}
        return [
            one["content"]["data"]
            for one in self.messages
            if one["msg_type"] in ("display_data", "update_display_data")
            and one["content"]["transient"].get("display_id") in names
        ]

    def _is_idle(self, cell: str) -> bool:
        return any(one["content"]["execution_state"] == "idle" for one in self.of(cell, "status"))


def _parent(message: dict[str, Any]) -> str:
    return str(message["parent_header"].get("msg_id", ""))


@contextmanager
def kernel(directory: Path) -> Iterator[Kernel]:
    """Start a kernel in a directory, and end it."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(directory))
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=WITHIN_S)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=not manager.is_alive())
