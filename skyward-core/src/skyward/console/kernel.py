"""
The Jupyter kernel that this process is: which cell runs, and what is shown under which cell.

IPython is never imported: where it is not loaded, this process is no kernel.
Messages are sent by the kernel's own session with the header of their cell, because what goes through the display
publisher or `sys.stdout` always ends up under the cell that runs.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

__all__ = ["JupyterKernel", "reads_html", "running_kernel"]

_log = logging.getLogger(__name__)

StreamName: TypeAlias = Literal["stdout", "stderr"]

_CELLS = 1000
"""Cells whose headers are kept."""

_NOTEBOOKS = ("JPY_SESSION_NAME", "COLAB_RELEASE_TAG", "VSCODE_PID")
"""Variables of kernels that a notebook server, Colab or an editor has started."""


def running_kernel() -> JupyterKernel | None:
    """Return the kernel that this process is; None where it is none, also in IPython in a terminal."""
    ipython = sys.modules.get("IPython")
    get_ipython = getattr(ipython, "get_ipython", None)
    shell = get_ipython() if get_ipython is not None else None
    kernel = getattr(shell, "kernel", None)
    if kernel is None or not all(hasattr(kernel, name) for name in ("session", "iopub_socket", "get_parent")):
        return None
    return JupyterKernel(shell)


def reads_html(request: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """
    Return whether the front end that runs a cell shows HTML, or a notebook keeps it for one that does.

    The protocol does not say it. Notebooks name their cells, and what runs a notebook as a batch has no keyboard.

    Args:
        request: The message that runs the cell.
        environ: The kernel's environment.

    >>> reads_html({"content": {"allow_stdin": True}}, {}), reads_html({"metadata": {"cellId": "a"}}, {})
    (False, True)
    """
    metadata = request.get("metadata") or {}
    if "cellId" in metadata or "deletedCells" in metadata:
        return True
    batch = not (request.get("content") or {}).get("allow_stdin", True)
    return batch or any(name in environ for name in _NOTEBOOKS)


class JupyterKernel:
    """
    Show things under cells.

    Args:
        shell: IPython's, of a kernel.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._kernel = shell.kernel
        self._requests: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    @property
    def request(self) -> Mapping[str, Any]:
        """Return the message that runs the current cell."""
        request: Mapping[str, Any] = self._kernel.get_parent("shell") or {}
        return request

    def cell(self) -> str:
        """Name the cell that runs now; empty if none has run."""
        request = self.request
        name = str((request.get("header") or {}).get("msg_id", ""))
        if name and name not in self._requests:
            self._requests[name] = request
            if len(self._requests) > _CELLS:
                self._requests.popitem(last=False)
        return name

    def write(self, cell: str, stream: StreamName, text: str) -> None:
        """
        Write text under a cell.

        Args:
            cell: What `cell` has named it.
            stream: Which stream it is of.
            text: The text.
        """
        self._send(cell, "stream", {"name": stream, "text": text}, f"stream.{stream}")

    def show(self, cell: str, display: str, bundle: Mapping[str, str], *, again: bool) -> None:
        """
        Show something under a cell, or in place of what is shown there already.

        Args:
            cell: What `cell` has named it.
            display: Names what is shown.
            bundle: What it is, by media type.
            again: Whether it is shown already.
        """
        content = {"data": dict(bundle), "metadata": {}, "transient": {"display_id": display}}
        self._send(cell, "update_display_data" if again else "display_data", content, "display_data")

    def wake(self) -> None:
        """
        Wake the loop that cells with `await` run in.

        An interrupt of one is seen there no sooner than something else wakes it, such as the end of what is awaited.
        """
        loop = getattr(self._kernel, "io_loop", None)
        if loop is not None:
            loop.add_callback(_nothing)

    def after_each_cell(self, call: Callable[[str, bool], None]) -> Callable[[], None]:
        """
        Call something at the end of each cell, with its name and whether it was interrupted.

        Args:
            call: What is called, in the thread of the cell.

        Returns:
            What ends that.
        """

        def ended(result: Any) -> None:
            error = getattr(result, "error_in_exec", None)
            # An interrupt cancels the task of a cell that awaits.
            call(self.cell(), isinstance(error, KeyboardInterrupt | asyncio.CancelledError))

        def end() -> None:
            try:
                self._shell.events.unregister("post_run_cell", ended)
            except ValueError:
                # It was unregistered before, by a reset of IPython.
                return

        self._shell.events.register("post_run_cell", ended)
        return end

    def _send(self, cell: str, kind: str, content: dict[str, Any], topic: str) -> None:
        try:
            # What the cell itself has printed until now comes first; IPython holds it back for a moment.
            sys.stdout.flush()
            sys.stderr.flush()
            parent = self._requests.get(cell) or self.request
            self._kernel.session.send(
                self._kernel.iopub_socket, kind, content, parent=parent, ident=topic.encode("ascii")
            )
        except Exception as error:
            # A kernel that shuts down has closed its sockets; the pool is closed all the same.
            _log.debug("notebook.unsent kind=%s: %s", kind, error)


def _nothing() -> None:
    return
