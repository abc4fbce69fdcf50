"""What an API replied, what that means to a provider, and how it is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from attrs import field, frozen

from skyward.errors import Limited, ProvisionError, SkywardError
from skyward.rest.field_errors import wrong_fields

__all__ = ["Meaning", "Reply", "hidden", "is_lost", "reply_of", "shortened"]

_LONGEST = 300
_WRONG_REQUEST = (400, 409, 422)
_SHORTEST_SECRET = 4
_WORDS = ("message", "msg", "detail", "error_description", "error", "title")
# The host key of a rented container is among the variables that lists of containers show.
_HOST_KEY = re.compile(r"(SKYWARD_START_KEY_\d+\W{1,9})[A-Za-z0-9+/=]+")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_NAMED = re.compile(r'(?i)("\w*(?:api_?key|private_?key|token|secret|password)"\s*:\s*")[^"]+')


def _lower(value: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their names in lower case."""
    return {name.lower(): text for name, text in value.items()}


@frozen(kw_only=True)
class Reply:
    """
    Hold what came back for one call.

    Args:
        method: What was asked for, such as `"GET"`.
        path: Of what, with the question that was asked.
        status: The HTTP status; 0 if no answer came, or not all of it.
        headers: The answer's headers, by any spelling of their names; kept in lower case.
        text: Its body; why there is none if no answer came.
        sent: Whether the call may have reached the other side.
        once: Whether it makes something, so that a second one might make it twice.
        subject: What it is about, for people, such as an instance type.

    >>> Reply(method="GET", path="/v2/sizes", status=200, headers={"X-Left": "9"}, text="{}").headers
    {'x-left': '9'}
    """

    method: str
    path: str
    status: int
    headers: Mapping[str, str] = field(factory=dict, converter=_lower, repr=False)
    text: str = field(default="", repr=False)
    sent: bool = True
    once: bool = False
    subject: str = ""

    @property
    def value(self) -> Any:
        """
        Return what the body says as JSON; None where it is no JSON, or empty.

        >>> Reply(method="GET", path="/", status=502, text="<html>").value is None
        True
        """
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None

    @property
    def words(self) -> str:
        """
        Return the API's own words: its message where it has one, else the beginning of the body.

        Of a request that is wrong, the errors of its fields follow.

        >>> Reply(method="GET", path="/", status=422, text='{"id": "x", "message": "No such size."}').words
        'No such size.'
        >>> text = '{"message": "Invalid request.", "errors": [{"field": "size", "message": "is unknown"}]}'
        >>> Reply(method="POST", path="/", status=422, text=text).words
        'Invalid request. (size: is unknown)'
        """
        value = self.value
        fields = wrong_fields(value) if self.status in _WRONG_REQUEST else ()
        if not fields:
            return shortened(_message(value) or self.text)
        own = shortened(_message({name: said for name, said in value.items() if not isinstance(said, list)}))
        more = shortened("; ".join(each for each in fields if each not in own))
        return f"{own} ({more})" if own and more else own or more


@frozen(kw_only=True)
class Meaning:
    """
    Say what a reply means that is no success, or that only looks like one.

    Args:
        kind: The error it is to the user; CapacityError, QuotaError, CredentialsError and ConfigError tell core that
            nothing was made, any other that is unknown.
        hint: What to do next.
        again: Whether to send the call again; None where the status decides.
        of: What a limit is of, besides the account, as in `QuotaError`; None for what that says by itself.
    """

    kind: type[SkywardError]
    hint: str | None = None
    again: bool | None = None
    of: tuple[Limited, ...] | None = None


def reply_of(error: BaseException | None) -> Reply | None:
    """
    Return the reply that an error stands for; None if it stands for none.

    Args:
        error: What a call of `Api` raised.
    """
    reply = getattr(error, "reply", None)
    return reply if isinstance(reply, Reply) else None


def is_lost(error: SkywardError) -> bool:
    """
    Return whether it is unknown what came of a call: no answer, trouble of the other side, or an unreadable success.

    Args:
        error: What the call raised.
    """
    reply = reply_of(error)
    unread = reply is not None and 200 <= reply.status < 300
    return reply is not None and (not reply.status or reply.status >= 500 or unread) and type(error) is ProvisionError


def hidden(text: str, secrets: Iterable[str]) -> str:
    """
    Return a text without its secrets.

    Args:
        text: What is to be shown.
        secrets: What must not be in it, in whatever way an address or JSON spells it. Fields of JSON that are named as
            secrets are hidden as well: an API may hand out keys of its own.

    >>> hidden("key=abc+def for Bearer 0123456789", ["abc+def"])
    'key=*** for Bearer ***'
    >>> hidden('{"id": 7, "instance_api_key": "384f"}', [])
    '{"id": 7, "instance_api_key": "***"}'
    """
    for secret in secrets:
        if len(secret) < _SHORTEST_SECRET:
            continue
        for spelling in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}:
            text = text.replace(spelling, "***")
    for pattern in (_HOST_KEY, _NAMED):
        text = pattern.sub(r"\1***", text)
    return _BEARER.sub(r"\1 ***", text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """
    Return the beginning of a text, in one line.

    Args:
        text: What is to be shown, such as a page of HTML.
        longest: Characters that are shown.

    >>> shortened("one\\n two   three", 9)
    'one two t…'
    """
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else f"{line[:longest]}…"


def _message(value: object) -> str:
    """Return the message in an error's body, which every API words differently."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(filter(None, map(_message, value)))
    if not isinstance(value, Mapping):
        return ""
    said = (_message(value[name]) for name in _WORDS if name in value)
    return next((text for text in said if text.strip()), "")
