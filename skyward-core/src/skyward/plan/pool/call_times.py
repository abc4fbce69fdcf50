"""When a call ran on its node, by the client's clock."""

from __future__ import annotations


def ran_between(
    placed: float | None, sent: float | None, answered: float, began: float | None, seconds: float
) -> tuple[float | None, float | None]:
    """
    Return when a call began and ended on its node, neither before it was sent nor after its answer was here.

    The node's clock may differ by more than what was measured, but what causes cannot come after what it caused.

    Args:
        placed: When it was its turn there, as the client sees it; None for a call that never was.
        sent: When it was sent.
        answered: When the answer was here.
        began: When it began, by the node's clock, corrected; None where the node did not say.
        seconds: How long it ran, as the node measured.

    >>> ran_between(10.0, 10.0, 12.0, 10.5, 1.0)
    (10.5, 11.5)
    >>> ran_between(10.0, 10.0, 12.0, 9.0, 1.0)
    (10.0, 11.0)
    >>> ran_between(10.0, 10.0, 12.0, 14.0, 1.0)
    (11.0, 12.0)
    >>> ran_between(None, None, 12.0, None, 0.0)
    (None, None)
    """
    if began is None or sent is None:
        return (None, None) if placed is None else (placed, answered)
    if began > answered - seconds:
        began = answered - seconds
    if began < sent:
        began = sent
    ended = began + seconds
    return began, min(answered, ended)
