"""A handler has a name that its owner knows it by."""

from __future__ import annotations

import functools
import io
from typing import Any

import pytest

from skyward.console.log import LogConsole
from skyward.engine.events.log_files import write_event
from skyward.engine.events.subscription import Subscription
from skyward.model.events.event import SkywardEvent


class Saver:
    """A handler with a state."""

    def __call__(self, event: object) -> None:
        """Take an event."""

    def save(self, event: object) -> None:
        """Take an event."""


@pytest.mark.parametrize(
    ("handler", "own", "expected"),
    [
        (Saver(), False, "Saver"),
        (Saver().save, False, "Saver.save"),
        (print, False, "print"),
        (functools.partial(print, end=""), False, "partial"),
        (functools.partial(write_event, pool="train"), True, "the log"),
        (LogConsole(io.StringIO()).handle, True, "the console"),
    ],
)
def test_a_handler_is_named_as_its_owner_knows_it(handler: Any, own: bool, expected: str) -> None:
    """The user's own by their names, those of Skyward by what they are for."""
    assert expected == Subscription((SkywardEvent,), handler, own).name
