"""Secrets in what is stored: which values are some, and how texts are cleared of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from skyward.plain import redacted

__all__ = ["Hidden", "named_secrets", "secrets_in", "secrets_of"]

_SECRET_NAME = re.compile(
    r"key(?!board|ring|word)|token(?!iz)|secret|passw|passphrase|pwd$|credential|auth(?!or)|cookie|dsn|webhook",
    re.IGNORECASE,
)
# A name that only looks like one: what is public of a key pair, a path, a number of tokens.
_HARMLESS_NAME = re.compile(
    r"(?:_|\b)(?:path|file|dir|name|size|max|min|len|length|public|type|url|port|id|sock)s?$", re.IGNORECASE
)
_TOKEN = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9_+=-]{20,}")
_LEAST = 6
_DEPTH = 5


def secrets_in(variables: Mapping[str, str]) -> frozenset[str]:
    """
    Return the values of variables that are secrets: by their names, or because they look like a token.

    Args:
        variables: The variables, such as an image's `env=`.

    >>> sorted(secrets_in({"HF_TOKEN": "hf_1234", "MODEL": "resnet50", "WANDB": "0123456789abcdef01234567"}))
    ['0123456789abcdef01234567', 'hf_1234']
    """
    tokens = (value for value in variables.values() if _TOKEN.fullmatch(value))
    return named_secrets(variables).union(tokens)


def named_secrets(variables: Mapping[str, str]) -> frozenset[str]:
    """
    Return the values of variables whose names say that they are secrets.

    Args:
        variables: The variables, such as those of this process.

    >>> named_secrets({"API_KEY": "abc-def", "KEY_FILE": "/etc/key", "CI_COMMIT": "0123456789abcdef01234567"})
    frozenset({'abc-def'})
    """
    return frozenset(value for name, value in variables.items() if _is_named(name) and _is_long(value))


def secrets_of(value: object) -> frozenset[str]:
    """
    Return the secrets in settings, such as those of a spec: of its provider, its image's variables, its volumes.

    Args:
        value: The settings, an attrs value.
    """
    return frozenset(_found(value, "", _DEPTH))


class Hidden:
    """
    Clear texts of secrets, and of the passwords in URLs.

    Args:
        secrets: The secrets.

    >>> Hidden(["hf_1234"]).clear("login with hf_1234 at https://me:pw@host/")
    'login with *** at https://***@host/'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        # The longest first: one may begin with another.
        parts = sorted({part for value in secrets for part in value.splitlines() if len(part) >= _LEAST}, key=len)
        self._pattern = re.compile("|".join(map(re.escape, reversed(parts)))) if parts else None

    def clear(self, text: str) -> str:
        """Return a text without secrets."""
        text = redacted(text)
        return self._pattern.sub("***", text) if self._pattern is not None else text


def _is_named(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None and _HARMLESS_NAME.search(name) is None


def _is_long(value: str) -> bool:
    # Short numbers are limits and counts, whatever their names are like.
    return len(value) >= _LEAST and not (value.isdigit() and len(value) <= 8)


def _found(value: object, name: str, depth: int) -> Iterable[str]:
    if isinstance(value, str):
        if _is_named(name) and _is_long(value):
            yield value
    elif depth == 0:
        return
    elif isinstance(value, Mapping):
        yield from secrets_in({str(key): text for key, text in value.items() if isinstance(text, str)})
        for key, inner in value.items():
            if not isinstance(inner, str):
                yield from _found(inner, str(key), depth - 1)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _found(inner, name, depth - 1)
    elif attrs.has(type(value)):
        of: Any = value
        for each in attrs.fields(type(of)):
            yield from _found(getattr(of, each.name, None), each.name, depth - 1)
