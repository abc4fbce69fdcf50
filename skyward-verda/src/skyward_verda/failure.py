"""What a refusal of Verda's means: which error of ours it is, what to do, and whether to send the call again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from skyward.provider import (
    CapacityError,
    ConfigError,
    CredentialsError,
    Meaning,
    ProvisionError,
    QuotaError,
    Reply,
    SkywardError,
    reply_of,
)

__all__ = ["is_gone", "is_lost", "meaning", "refusals", "unless_gone"]

T = TypeVar("T")

# An id that is not known is not answered as something that is not there, but as a request that is wrong.
_GONE = re.compile(r"discontinue a discontinued instance|invalid (?:instance|volume|ssh-?key|(?:startup )?script) id")
_KEYS = "Check VERDA_CLIENT_ID and VERDA_CLIENT_SECRET, or the profile."


def meaning(reply: Reply) -> Meaning | None:
    """
    Return what a reply means; None leaves it to the status.

    Args:
        reply: What came back.

    >>> full = '{"code": "service_unavailable", "message": "Not enough resources to deploy a 1 GPU instance"}'
    >>> meaning(Reply(method="POST", path="/instances", status=503, text=full)).kind.__name__
    'CapacityError'
    """
    status, code, words = reply.status, _code(reply), reply.words.lower()
    if status in (202, 207):
        # A success that may hide failures.
        return Meaning(kind=ProvisionError, again=False) if refusals(reply.value) else None
    if 200 <= status < 300:
        return None
    if status == 402 or code == "insufficient_funds":
        return Meaning(kind=CredentialsError, hint="Add credit to the account.", again=False)
    if "not enough resources" in words:
        return Meaning(kind=CapacityError, hint="Try another location or type, or the other market.", again=False)
    if status in (400, 403, 409) and ("limit exceeded" in words or "quota" in words):
        return Meaning(kind=QuotaError, hint="Ask Verda's support for more, or delete what is not needed.", again=False)
    if status == 401 or code == "unauthorized_request" or (status in (400, 403) and reply.path == "/oauth2/token"):
        return Meaning(kind=CredentialsError, hint=_KEYS, again=False)
    if code == "forbidden_action":
        # What it forbids is the moment, and no right.
        return Meaning(kind=ProvisionError, again=False)
    if status == 400:
        return Meaning(kind=ConfigError, again=False)
    return None


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
    try:
        return await call
    except SkywardError as error:
        if not is_gone(error):
            raise
        return None


def is_lost(error: SkywardError) -> bool:
    """
    Return whether it is unknown what came of a call.

    Args:
        error: What the call raised.
    """
    reply = reply_of(error)
    unread = reply is not None and 200 <= reply.status < 300
    return reply is not None and (not reply.status or reply.status >= 500 or unread) and type(error) is ProvisionError


def _says_gone(words: str) -> bool:
    return _GONE.search(words.lower()) is not None


def _code(reply: Reply) -> str:
    value = reply.value
    return str(value.get("code", "")) if isinstance(value, Mapping) else ""
