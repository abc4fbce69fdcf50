"""Translate a cloud's word for the state of a machine, known or not."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping

from skyward.model.instances.machine import InstanceState

__all__ = ["life"]

_log = logging.getLogger(__name__)

WARNED = 1024
"""Warnings that are remembered, so that a machine that is listed every few seconds gives one."""


def life(word: object, known: Mapping[str, InstanceState], *, provider: str, instance: object) -> InstanceState:
    """
    Return what the word for a machine's state means.

    A word that is not known counts as ending, with a warning: the machine is of no use as far as we know, and it is
    billed until the provider says otherwise. An error instead would make all machines of its list unreadable.

    Args:
        word: The provider's word for the machine's state.
        known: The words there are.
        provider: The provider's name, for the warning.
        instance: The machine's id, for the warning.

    >>> words = {"active": InstanceState.RUNNING}
    >>> life("active", words, provider="x", instance="i-1").name
    'RUNNING'
    >>> life("rebalancing", words, provider="x", instance="i-1").name
    'ENDING'
    """
    found = known.get(word) if isinstance(word, str) else None
    if found is None:
        _warn(provider, f"{instance!r:.80}", f"{word!r:.80}")
        return InstanceState.ENDING
    return found


@functools.lru_cache(WARNED)
def _warn(provider: str, instance: str, word: str) -> None:
    """Warn once of a machine's word."""
    _log.warning(
        "instance.state_unknown provider=%s instance=%s state=%s taken_for=ending hint=%s",
        provider,
        instance,
        word,
        "It may be new: look for a newer release of Skyward.",
    )
