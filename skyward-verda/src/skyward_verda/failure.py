"""What a refusal of Verda's means: which error of ours it is, what to do, and whether to send the call again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from skyward.provider import (
    CapacityError,
    ConfigError,
    CredentialsError,
    ErrorRow,
    ProvisionError,
    QuotaError,
    listed,
    meaning_by,
    reply_of,
    unless,
)

__all__ = ["is_gone", "meaning", "read_list", "refusals", "unless_gone"]

T = TypeVar("T")

# An id that is not known is not answered as something that is not there, but as a request that is wrong.
_GONE = re.compile(r"discontinue a discontinued instance|invalid (?:instance|volume|ssh-?key|(?:startup )?script) id")
_CREDIT = "Add credit to the account."
_KEYS = "Check VERDA_CLIENT_ID and VERDA_CLIENT_SECRET, or the profile."


_ROWS = (
    ErrorRow(kind=CredentialsError, status=(402,), hint=_CREDIT, again=False),
    ErrorRow(kind=CredentialsError, code=("insufficient_funds",), hint=_CREDIT, again=False),
    ErrorRow(
        kind=CapacityError,
        words=("not enough resources",),
        hint="Try another location or type, or the other market.",
        again=False,
    ),
    ErrorRow(
        kind=QuotaError,
        status=(400, 403, 409),
        words=("limit exceeded", "quota"),
        hint="Ask Verda's support for more, or delete what is not needed.",
        again=False,
    ),
    ErrorRow(kind=CredentialsError, status=(401,), hint=_KEYS, again=False),
    ErrorRow(kind=CredentialsError, code=("unauthorized_request",), hint=_KEYS, again=False),
    ErrorRow(kind=CredentialsError, status=(400, 403), call="POST /oauth2/token", hint=_KEYS, again=False),
    # What it forbids is the moment, and no right.
    ErrorRow(kind=ProvisionError, code=("forbidden_action",), again=False),
    ErrorRow(kind=ConfigError, status=(400,), again=False),
)
"""What each refusal means; all else is left to its status."""


def refusals(answer: object) -> list[str]:
    """
    Return what an answer to several orders says of those that failed; one for what is gone already is none.

    Args:
        answer: The array that comes with 202 and 207.

    >>> refusals([{"instanceId": "a", "status": "success"}, {"instanceId": "b", "error": "No.", "statusCode": 403}])
    ['b: No.']
    """
    found = []
    for row in answer if isinstance(answer, list) else ():
        if not isinstance(row, Mapping):
            continue
        said, status = str(row.get("error") or ""), row.get("statusCode")
        bad = isinstance(status, int) and status >= 400
        if (said or bad or row.get("status") in ("error", "failed")) and not _says_gone(said):
            found.append(f"{row.get('instanceId')}: {said or status or row.get('status')}")
    return found


def read_list(answer: object) -> list[Any]:
    """
    Return an answer that is a list.

    Args:
        answer: The answer.

    Raises:
        Misread: If it is none.
    """
    return listed(answer, "")


def is_gone(error: BaseException) -> bool:
    """
    Return whether a call was refused because what it is about is gone; the code alone does not tell.

    Args:
        error: What the call raised.
    """
    reply = reply_of(error)
    return reply is not None and reply.status in (400, 403, 404) and _says_gone(reply.words)


async def unless_gone(call: Awaitable[T]) -> T | None:
    """
    Return what a call returns; None where what it is about is gone.

    Args:
        call: The call.

    Raises:
        SkywardError: If it was refused for another reason.
    """
    return await unless(is_gone, call)


def _says_gone(words: str) -> bool:
    return _GONE.search(words.lower()) is not None


# A success may hide failures.
_HIDDEN = ErrorRow(kind=ProvisionError, status=(202, 207), when=lambda reply: bool(refusals(reply.value)), again=False)

meaning = meaning_by((_HIDDEN, *_ROWS), failed=_HIDDEN.fits)
"""Return what a reply means; None leaves it to the status."""
