"""
Commands of `sky`, the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import text

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

__all__ = ["Command"]


def _callable(instance: object, attribute: object, value: Any) -> None:
    """Refuse what cannot be called."""
    if value is not None and not callable(value):
        raise ConfigError(f"A command is run by calling it, and {value!r} cannot be called.")


def _summary(value: str) -> str:
    """Return what a command does, checked."""
    return text(value, "summary")


@frozen
class Command:
    """
    Describe a command of `sky`.

    Args:
        run: Called with what was typed; returns the exit code, None for 0. It prints what was asked for, and raises
            `ConfigError` for what was typed wrongly and another `SkywardError` for what failed.
        summary: What it does, in one sentence, for the list of commands.
        arguments: Called with the command's parser to add its arguments; None for a command without any.

    Raises:
        ConfigError: If it cannot be called, or says nothing.

    >>> Command(lambda options: None, summary="Do nothing.").summary
    'Do nothing.'
    """

    run: Callable[[Namespace], int | None] = field(validator=_callable)
    summary: str = field(kw_only=True, converter=_summary)
    arguments: Callable[[ArgumentParser], object] | None = field(default=None, kw_only=True, validator=_callable)
