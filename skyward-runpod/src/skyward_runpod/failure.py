"""What a refusal of RunPod means: which error of ours it is, and what to do."""

from __future__ import annotations

from skyward.provider import (
    CapacityError,
    ConfigError,
    CredentialsError,
    ErrorRow,
    QuotaError,
    meaning_by,
)

__all__ = ["PODS", "meaning"]

PODS = "/v2/pods"

_RENT = f"POST {PODS}"
_NO_CAPACITY = (
    "no longer any instances",
    "no instances",
    "not available",
    "unavailable",
    "no capacity",
    "no resources",
)
_QUOTA = ("spend limit", "spending limit", "quota", "limit exceeded", "limit reached", "maximum number")

# A lack of machines and a broken rule share the status 400, and only the words tell.
meaning = meaning_by(
    (
        ErrorRow(CredentialsError, "Check the key: it is wrong, or was revoked.", status=(401,)),
        ErrorRow(
            CredentialsError,
            "Add money to the RunPod account: an hour of what is rented has to be there.",
            status=(402,),
        ),
        # It may be true of one kind in one cloud only, and a quota would close more than that.
        ErrorRow(
            CapacityError, "This account, or its key, may not rent this kind of machine.", call=_RENT, status=(403,)
        ),
        ErrorRow(CredentialsError, "Give the key the right to read and write pods.", status=(403,)),
        ErrorRow(
            ConfigError,
            "Check the image, and what else the provider was given.",
            status=(422,),
        ),
        ErrorRow(ConfigError, "Check the image, and the credential of its registry.", call=_RENT, status=(404,)),
        ErrorRow(
            CapacityError,
            "Try another kind of machine, a wider choice of data centres, or later.",
            call=_RENT,
            status=(400,),
            words=_NO_CAPACITY,
        ),
        # What may be spent, or rented at a time, whatever it is.
        ErrorRow(QuotaError, "RunPod's support raises limits.", call=_RENT, status=(400,), words=_QUOTA, of=()),
        ErrorRow(
            CapacityError,
            "If every offer is refused with these words, it is the request and not a lack of machines.",
            call=_RENT,
            status=(400,),
        ),
    )
)
"""Returns what a reply means; None leaves it to its status."""
