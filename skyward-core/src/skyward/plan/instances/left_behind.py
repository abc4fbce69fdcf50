"""
What is said of machines that could not be ended: which, why, what becomes of them, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skyward.errors import LeftBehindError, SkywardError

if TYPE_CHECKING:
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.machine import ProviderFacts

__all__ = ["left_behind", "reason", "together"]


def left_behind(
    unended: Mapping[str, str], cluster: Cluster, facts: ProviderFacts, *, guardian: int | None = None
) -> LeftBehindError:
    """
    Return the error that tells of machines which a pool could not end.

    Args:
        unended: Why not, by the machines' ids.
        cluster: The pool.
        facts: What holds for the provider.
        guardian: The process that goes on ending them, if there is one.
    """
    return LeftBehindError(
        f"Pool {cluster.pool_name!r} could not end all it had at {facts.name}, and may go on being billed for "
        f"{', '.join(unended)}: {next(iter(unended.values()))} {_fate(cluster.spec.ttl, facts, guardian)}",
        instances=tuple(unended),
        provider=facts.name,
        pool=cluster.pool_name,
        hint=f"To see what is left, type: sky ls. To end it: sky down {cluster.pool_id}",
    )


def reason(error: BaseException) -> str:
    """
    Return why a machine could not be ended, as the provider said it first.

    Args:
        error: What ending it raised.

    >>> error = SkywardError("It may still be billed.")
    >>> error.__cause__ = SkywardError("Not allowed.")
    >>> reason(error)
    'Not allowed.'
    """
    while isinstance(error.__cause__, SkywardError):
        error = error.__cause__
    return str(error)


def _fate(ttl: float | None, facts: ProviderFacts, guardian: int | None) -> str:
    """Return who ends what a pool could not end."""
    if guardian is not None:
        return f"Guardian (process {guardian}) goes on ending what is left, for a day."
    if facts.ends_own_bill and facts.end_command and ttl:
        left, rest = "What is left", ""
        if facts.ends_own_bill == "running":
            left, rest = "What is left and runs", " Nothing else ends what does not run."
        return f"{left} terminates itself at the latest {ttl:g} s after it last heard from this program.{rest}"
    return "Nothing else ends what is left."


def together(errors: Sequence[BaseException]) -> BaseException:
    """
    Return the first of errors that came side by side, with the others as its notes.

    Args:
        errors: One or more.

    >>> together([KeyError("a"), ValueError("b is wrong")]).__notes__
    ['b is wrong']
    """
    for other in errors[1:]:
        for note in (str(other), *getattr(other, "__notes__", ())):
            errors[0].add_note(note)
    return errors[0]
