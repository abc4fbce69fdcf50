"""What holds for Vast.ai's API: where it is, how often it may be called, whose key is used, what its answers mean."""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import evolve

from skyward.provider import (
    CapacityError,
    ConfigError,
    Credential,
    CredentialsError,
    Limit,
    Meaning,
    ProvisionError,
    QuotaError,
    Reply,
    Service,
)

__all__ = ["base_url", "find_key", "meaning", "places", "service"]

LIMITS = {
    "search": (Limit(10, 60.0),),
    "create": (Limit(1, 4.5),),
    "destroy": (Limit(1, 3.0),),
    "list": (Limit(1, 1.0),),
    "ssh": (Limit(1, 1.0),),
    "volumes": (Limit(1, 5.5),),
}
"""How often an account may call, by kind, as the API's own descriptions say."""

_HOME = "https://console.vast.ai"
_GONE = Meaning(
    kind=CapacityError, hint="Another customer took it; other listings may do, or another kind of GPU.", again=False
)
_EMPTY = Meaning(kind=CredentialsError, hint="Add credit in Vast.ai's console, under Billing.", again=False)
_KEY = Meaning(
    kind=CredentialsError, hint="Make a key in Vast.ai's console, under Keys, and set VAST_API_KEY.", again=False
)
_MEANINGS = {
    "auth_error": _KEY,
    "missing_billing": _EMPTY,
    "invalid_price": Meaning(
        kind=CapacityError, hint="Others bid more by now; raise bid_factor, or rent on demand.", again=False
    ),
    "search_quota_exceeded": Meaning(
        kind=QuotaError,
        hint="The account's searches of today are used up; there are new ones at midnight UTC.",
        again=False,
        of=(),
    ),
    "deprecated_endpoint": Meaning(
        kind=ProvisionError, hint="Vast.ai took this call away: look for a newer release of Skyward.", again=False
    ),
    "label_too_long": Meaning(kind=ConfigError, hint="Give the pool a shorter name.", again=False),
    "invalid_args": Meaning(kind=ConfigError, hint="Check the name of the Docker image and the disk.", again=False),
}


_PLACES = Credential(
    provider="vastai",
    title="Vast.ai",
    parameter="api_key",
    variables=("VAST_API_KEY",),
    hint="Make one in Vast.ai's console, under Keys, and set VAST_API_KEY, or write sky.VastAI(api_key=...).",
)


def base_url(environment: Mapping[str, str]) -> str:
    """
    Return where the API is; Vast's own tools look at `VAST_URL` as well.

    >>> base_url({})
    'https://console.vast.ai'
    """
    return (environment.get("VAST_URL") or _HOME).rstrip("/")


def service() -> Service:
    """Describe the API."""
    return Service(
        provider="vastai",
        title="Vast.ai",
        base_url=base_url(os.environ),
        limits=LIMITS,
        meaning=meaning,
        # Thousands of listings are megabytes.
        largest=64 * 1024 * 1024,
    )


def places(environment: Mapping[str, str]) -> tuple[str, ...]:
    """
    List the files in which Vast's own tools keep a key.

    >>> places({"XDG_CONFIG_HOME": "/c"})
    ('/c/vastai/vast_api_key', '~/.vast_api_key')
    """
    settings = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return f"{settings}/vastai/vast_api_key", "~/.vast_api_key"


def find_key(given: str | None, environment: Mapping[str, str]) -> str:
    """
    Find the account's key where Vast's own tools look for it.

    Args:
        given: The key that the user wrote.
        environment: The variables.

    Raises:
        NoCredentialsError: If there is none.

    >>> find_key(None, {"VAST_API_KEY": "k"})
    'k'
    """
    return evolve(_PLACES, files=places(environment)).find(given, environment)


def meaning(reply: Reply) -> Meaning | None:
    """
    Return what an answer means; None where its status says it all.

    The status alone is no guide: a wrong key is answered as something that is not there, and a refusal may come as a
    success.

    Args:
        reply: The answer.

    >>> gone = '{"success": false, "error": "invalid_args", "msg": "error 404/3603: no_such_ask"}'
    >>> meaning(Reply(method="PUT", path="/", status=404, text=gone)).kind.__name__
    'CapacityError'
    """
    value = reply.value
    told = value if isinstance(value, Mapping) else {}
    if reply.status < 400 and told.get("success") is not False:
        return None
    code, words = str(told.get("error") or ""), reply.words.lower()
    if "no_such_ask" in f"{code} {words}":
        return _GONE
    if "invalid user key" in words:
        return _KEY
    if "insufficient credit" in words:
        return _EMPTY
    if code in _MEANINGS:
        return _MEANINGS[code]
    if reply.status < 400:
        return Meaning(kind=ProvisionError, again=False)
    return None
