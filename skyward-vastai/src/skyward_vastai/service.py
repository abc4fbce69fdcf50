"""What holds for Vast.ai's API: where it is, how often it may be called, whose key is used, what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.provider import (
    CapacityError,
    ConfigError,
    Credential,
    CredentialsError,
    ErrorRow,
    Limit,
    ProvisionError,
    QuotaError,
    Reply,
    Service,
    meaning_by,
)

__all__ = ["KEY", "SERVICE", "meaning"]

LIMITS = {
    "search": (Limit(10, 60.0),),
    "create": (Limit(1, 4.5),),
    "destroy": (Limit(1, 3.0),),
    "list": (Limit(1, 1.0),),
    "ssh": (Limit(1, 1.0),),
    "volumes": (Limit(1, 5.5),),
}
"""How often an account may call, by kind, as the API's own descriptions say."""

_NO_CREDIT = "Add credit in Vast.ai's console, under Billing."
_NO_KEY = "Make a key in Vast.ai's console, under Keys, and set VAST_API_KEY."


def _failed(reply: Reply) -> bool:
    value = reply.value
    return isinstance(value, Mapping) and value.get("success") is False


# The status alone is no guide: a wrong key is answered as something that is not there.
meaning = meaning_by(
    (
        ErrorRow(
            CapacityError,
            "Another customer took it; other listings may do, or another kind of GPU.",
            words=("no_such_ask",),
            again=False,
        ),
        ErrorRow(CredentialsError, _NO_KEY, words=("invalid user key",), again=False),
        ErrorRow(CredentialsError, _NO_CREDIT, words=("insufficient credit",), again=False),
        ErrorRow(CredentialsError, _NO_KEY, code=("auth_error",), again=False),
        ErrorRow(CredentialsError, _NO_CREDIT, code=("missing_billing",), again=False),
        ErrorRow(
            CapacityError,
            "Others bid more by now; raise bid_factor, or rent on demand.",
            code=("invalid_price",),
            again=False,
        ),
        ErrorRow(
            QuotaError,
            "The account's searches of today are used up; there are new ones at midnight UTC.",
            code=("search_quota_exceeded",),
            again=False,
            of=(),
        ),
        ErrorRow(
            ProvisionError,
            "Vast.ai took this call away: look for a newer release of Skyward.",
            code=("deprecated_endpoint",),
            again=False,
        ),
        ErrorRow(ConfigError, "Give the pool a shorter name.", code=("label_too_long",), again=False),
        ErrorRow(ConfigError, "Check the name of the Docker image and the disk.", code=("invalid_args",), again=False),
        ErrorRow(ProvisionError, when=lambda reply: reply.status < 400, again=False),
    ),
    # A refusal may come as a success.
    failed=_failed,
)
"""Returns what an answer means; None where its status says it all."""

SERVICE = Service(
    provider="vastai",
    title="Vast.ai",
    base_url="https://console.vast.ai",
    # Vast's own tools look at it as well.
    url_variable="VAST_URL",
    limits=LIMITS,
    meaning=meaning,
    # Thousands of listings are megabytes.
    largest=64 * 1024 * 1024,
)

KEY = Credential(
    provider="vastai",
    title="Vast.ai",
    parameter="api_key",
    variables=("VAST_API_KEY",),
    files=("~/.config/vastai/vast_api_key", "~/.vast_api_key"),
    hint="Make one in Vast.ai's console, under Keys, and set VAST_API_KEY, or write sky.VastAI(api_key=...).",
)
"""Where Vast's own tools look for the key as well."""
