"""The signature of `sky.Compute`, as `help` and notebooks show it."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

import attrs

from skyward.model.fields.keywords import PoolKeywords
from skyward.model.spec.allocation import Allocation
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import Options, Worker
from skyward.model.spec.spec import Spec

__all__ = ["LEFT_OUT", "pool_signature"]


class _LeftOut:
    """Stands for a default that is made for each pool, or that another keyword decides."""

    def __repr__(self) -> str:
        return "..."


LEFT_OUT = _LeftOut()


def pool_signature() -> Signature:
    """
    Return the signature with each keyword of its own, its type and its default.

    The keywords themselves are in one table, `PoolKeywords`, which type checkers read.

    >>> list(pool_signature().parameters)[:6]
    ['specs', 'name', 'options', 'provider', 'accelerator', 'nodes']
    >>> pool_signature().parameters["nodes"].default
    1
    """
    defaults = {field.name: field.default for kind in (Worker, Options, Spec) for field in attrs.fields(kind)}
    return Signature(
        [
            Parameter("specs", Parameter.VAR_POSITIONAL, annotation="Spec"),
            Parameter("name", Parameter.KEYWORD_ONLY, default=None, annotation="str | None"),
            Parameter("options", Parameter.KEYWORD_ONLY, default=None, annotation="Options | None"),
            *(
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    default=_shown(defaults.get(name, LEFT_OUT)),
                    annotation=getattr(kind, "__forward_arg__", kind),
                )
                for name, kind in PoolKeywords.__annotations__.items()
            ),
        ]
    )


def _shown(default: Any) -> Any:
    """Return a default as a user would write it."""
    match default:
        case Nodes():
            return default.desired
        case Allocation():
            return default.strategy
        case None | bool() | int() | float() | str() | ():
            return default
    return LEFT_OUT
