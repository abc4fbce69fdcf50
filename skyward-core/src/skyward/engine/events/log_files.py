"""Skyward's own log: written to a file while a pool is open."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path

from skyward.console.wording import tell
from skyward.model.events.event import ALL, Log, Metric, Metrics, Progress, SkywardEvent, TaskCompleted, TaskStarted
from skyward.model.fields.log_config import LogConfig
from skyward.plain import plain_text, redacted

_FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"
_UNDELIVERED = "undelivered %s"
_LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}
LIFECYCLE = tuple(
    kind for kind in ALL if not issubclass(kind, (Log, Metric, Metrics, Progress, TaskStarted, TaskCompleted))
)
"""The events that are logged; what happens to tasks is too much for a log."""

_log = logging.getLogger("skyward")
_events = logging.getLogger("skyward.events")
_lock = threading.Lock()
_open: dict[LogConfig, tuple[list[logging.Handler], int]] = {}


@contextlib.contextmanager
def logging_to(config: LogConfig | None) -> Iterator[None]:
    """
    Write the log as configured inside a `with` block; pools that are configured alike share one file.

    Args:
        config: Where it goes; None writes nothing.
    """
    if config is None:
        yield
        return
    with _lock:
        handlers, users = _open.get(config) or (_handlers(config), 0)
        _open[config] = (handlers, users + 1)
        if not users:
            for handler in handlers:
                _log.addHandler(handler)
            _log.setLevel(min(_LEVELS[config.level], _log.level or _LEVELS[config.level]))
    try:
        yield
    finally:
        with _lock:
            handlers, users = _open.pop(config)
            if users > 1:
                _open[config] = (handlers, users - 1)
            else:
                for handler in handlers:
                    _log.removeHandler(handler)
                    # A disk that is full may fail only now; the pool is left all the same.
                    with contextlib.suppress(OSError):
                        handler.close()
            if not _open:
                _log.setLevel(logging.NOTSET)


def write_event(event: SkywardEvent, *, pool: str) -> None:
    """
    Write what happened to a pool or node.

    Args:
        event: What happened.
        pool: Name of the pool; several may write to one file.
    """
    line = tell(event)
    if line is not None:
        node = "" if line.node is None else f" node={line.node}"
        _events.info("%s pool=%s%s %s", type(event).__name__, pool, node, line.text)


def keep(config: LogConfig | None, events: Sequence[SkywardEvent]) -> str | None:
    """
    Write to the log's file what no handler took, whatever the log's level.

    Args:
        config: The log of a pool that is still open; None for none.
        events: What was not taken, in order.

    Returns:
        The file; None if there is none that can be written.
    """
    with _lock:
        handlers, _ = _open.get(config) or ([], 0) if config is not None else ([], 0)
        files = [handler for handler in handlers if isinstance(handler, (_TimedFile, _SizedFile))]
    for handler in files:
        records = [
            _events.makeRecord(_events.name, logging.INFO, "", 0, _UNDELIVERED, (_kept(e),), None) for e in events
        ]
        # A file that cannot be written any more refuses all that comes after.
        if all(handler.handle(record) for record in records) and handler.filter(records[-1]):
            return handler.baseFilename
    return None


def _kept(event: SkywardEvent) -> str:
    """Return an event as text: a line as it was printed, anything else by its fields."""
    if isinstance(event, Log):
        return f"node={event.node} {event.stream} {event.line}"
    try:
        line = tell(event)
        return f"{type(event).__name__} {line.text if line is not None else event!r}"
    except Exception as error:  # an event of the user's own, which may show itself as it likes
        return f"{type(event).__name__}, which cannot be shown: {type(error).__name__}"


def _handlers(config: LogConfig) -> list[logging.Handler]:
    handlers: list[logging.Handler] = []
    path = Path(config.file).expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = _file_handler(path, config)
        handler.setLevel(_LEVELS[config.level])
        handlers.append(handler)
    except OSError as error:
        _log.warning("The log %s cannot be written: %s", path, error)
    if config.console:
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setLevel(logging.WARNING)
        handlers.append(terminal)
    for each in handlers:
        each.setFormatter(_Plain(_FORMAT))
    return handlers


class _Plain(logging.Formatter):
    """Format a record without passwords and control characters; its continuation lines are marked as such."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(plain_text(super().format(record))).replace("\n", "\n  | ")


def _file_handler(path: Path, config: LogConfig) -> logging.Handler:
    if config.rotation_s is not None:
        seconds = max(1, int(config.rotation_s))
        return _TimedFile(path, when="S", interval=seconds, backupCount=config.retention, delay=True)
    return _SizedFile(path, maxBytes=config.rotation_bytes or 0, backupCount=config.retention, delay=True)


class _TimedFile(logging.handlers.TimedRotatingFileHandler):
    """A file of which a new one is begun after some time."""

    def _open(self) -> TextIOWrapper:
        return _opened(self.baseFilename)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name is logging's
        _give_up(self)


class _SizedFile(logging.handlers.RotatingFileHandler):
    """A file of which a new one is begun at some size."""

    def _open(self) -> TextIOWrapper:
        return _opened(self.baseFilename)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name is logging's
        _give_up(self)


def _opened(path: str) -> TextIOWrapper:
    """Open a log, which is made for this user alone."""
    return open(
        path, "a", encoding="utf-8", errors="backslashreplace", opener=lambda name, how: os.open(name, how, 0o600)
    )


def _give_up(handler: logging.FileHandler) -> None:
    """Report once that a log cannot be written, and write no more to it."""
    handler.addFilter(lambda record: False)
    # There may be no terminal, or one that is a file on the same disk.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"skyward: the log {handler.baseFilename} cannot be written any more: {sys.exc_info()[1]}\n")
