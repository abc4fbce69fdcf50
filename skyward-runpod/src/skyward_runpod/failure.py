"""What a refusal of RunPod means: which error of ours it is, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.provider import CapacityError, ConfigError, CredentialsError, Meaning, QuotaError, Reply, shortened

__all__ = ["PODS", "meaning"]

PODS = "/v2/pods"

_NO_CAPACITY = (
    "no longer any instances",
    "no instances",
    "not available",
    "unavailable",
    "no capacity",
    "no resources",
)
_QUOTA = ("spend limit", "spending limit", "quota", "limit exceeded", "limit reached", "maximum number")
_SAME = "If every offer is refused with these words, it is the request and not a lack of machines."


def meaning(reply: Reply) -> Meaning | None:
    """
    Return what a reply means; None leaves it to its status.

    A lack of machines and a broken rule share the status 400, and only the words tell.

    Args:
        reply: What came back.

    >>> full = '{"status": 400, "detail": "There are no longer any instances available with the ..."}'
    >>> meaning(Reply(method="POST", path=PODS, status=400, text=full)).kind.__name__
    'CapacityError'
    """
    renting = (reply.method, reply.path) == ("POST", PODS)
    if reply.status == 401:
        return Meaning(kind=CredentialsError, hint="Check the key: it is wrong, or was taken back.")
    if reply.status == 402:
        hint = "Add money to the RunPod account: an hour of what is rented has to be there."
        return Meaning(kind=CredentialsError, hint=hint)
    if reply.status == 403 and renting:
        # It may be true of one kind in one cloud only, and a quota would close more than that.
        return Meaning(kind=CapacityError, hint="This account, or its key, may not rent this kind of machine.")
    if reply.status == 403:
        return Meaning(kind=CredentialsError, hint="Give the key the right to read and write pods.")
    if reply.status == 422:
        return Meaning(
            kind=ConfigError, hint=_errors(reply) or "Check the image, and what else the provider was given."
        )
    if renting and reply.status == 404:
        return Meaning(kind=ConfigError, hint="Check the image, and the credential of its registry.")
    if renting and reply.status == 400:
        said = reply.words.lower()
        if any(words in said for words in _NO_CAPACITY):
            return Meaning(
                kind=CapacityError, hint="Try another kind of machine, a wider choice of data centres, or later."
            )
        if any(words in said for words in _QUOTA):
            # What may be spent, or rented at a time, whatever it is.
            return Meaning(kind=QuotaError, hint="RunPod's support raises limits.", of=())
        return Meaning(kind=CapacityError, hint=_SAME)
    return None


def _errors(reply: Reply) -> str:
    """Return what is wrong with a request, field by field."""
    value = reply.value
    errors = value.get("errors") if isinstance(value, Mapping) else None
    return shortened("; ".join(map(str, errors))) if isinstance(errors, list) else ""
