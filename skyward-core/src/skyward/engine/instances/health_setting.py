"""The user's health check as it travels to nodes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from skyward.errors import ConfigError

if TYPE_CHECKING:
    from skyward.model.spec.health_checker import HealthChecker

__all__ = ["CHECK_PROCESS", "health_setting"]

CHECK_PROCESS: Final = ("-P", "-m", "skyward.node.health.check_process")
"""What a node's Python is started with to run it."""

LARGEST: Final = 256 << 10
"""Bytes of its pickle at most: it travels with what starts a node."""


def health_setting(checker: HealthChecker | None) -> dict[str, Any]:
    """
    Return what an agent is to know of a health check; nothing where there is none.

    Args:
        checker: What the user wrote.

    Raises:
        ConfigError: If the predicate cannot be sent, or is too large.
    """
    if checker is None:
        return {}
    import cloudpickle

    name = getattr(checker.predicate, "__qualname__", type(checker.predicate).__name__)
    try:
        pickled: bytes = cloudpickle.dumps(checker.predicate)
    except Exception as error:
        raise ConfigError(
            f"health_checker: the predicate {name} cannot be sent to nodes: {type(error).__name__}: {error}.",
            hint="Have it open inside itself what cannot be pickled.",
        ) from error
    if len(pickled) > LARGEST:
        raise ConfigError(
            f"health_checker: the predicate {name} has {len(pickled):,} bytes with all it captures, and {LARGEST:,} "
            "are the most.",
            hint="Have it read inside itself what is large.",
        )
    return {
        "predicate": base64.b64encode(pickled).decode(),
        "period": checker.period,
        "failures": checker.failures,
        "timeout": checker.timeout,
    }
