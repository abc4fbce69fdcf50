"""
References in texts of a configuration file: `${NAME}`, `${NAME:-default}`, `${file:PATH}`, `${keyring:SERVICE/USER}`.

`$$` is a dollar. Texts for a shell on a node, such as `shell_vars`, have dollars of their own and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from attrs import frozen

from skyward.errors import ConfigError

__all__ = ["FOR_A_SHELL", "Reference", "filled_in", "hidden", "parts", "references", "written"]

FOR_A_SHELL = frozenset({"shell_vars", "command"})
"""Keys below which dollars are those of a shell on a node."""

_MARK = re.compile(r"\$\$|\$\{([^{}]*)(\}?)")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_USUAL = 'Write "${NAME}", "${NAME:-default}", "${file:PATH}" or "${keyring:SERVICE/USER}"; "$$" is a dollar.'


@frozen
class Reference:
    """
    Say where a text is kept that a configuration file only names.

    Args:
        kind: What keeps it.
        name: Name of the variable, path of the file, or `SERVICE/USER` in the keyring.
        default: What a variable that is not set stands for; None where that is an error.
    """

    kind: Literal["variable", "file", "keyring"]
    name: str
    default: str | None = None

    def __str__(self) -> str:
        """Return it as a file writes it, without the default."""
        return f"${{{self.name}}}" if self.kind == "variable" else f"${{{self.kind}:{self.name}}}"


def parts(text: str) -> tuple[str | Reference, ...]:
    """
    Return a text as what stands in it and what it refers to.

    Args:
        text: As the file writes it.

    Raises:
        ConfigError: If a reference is none of the four forms.

    >>> [str(part) for part in parts("Bearer ${TOKEN:-none} for $$5")]
    ['Bearer ', '${TOKEN}', ' for ', '$', '5']
    """
    found: list[str | Reference] = []
    start = 0
    for mark in _MARK.finditer(text):
        found += [text[start : mark.start()], "$" if mark[0] == "$$" else _reference(mark)]
        start = mark.end()
    return tuple(part for part in (*found, text[start:]) if part != "")


def _reference(mark: re.Match[str]) -> Reference:
    if not mark[2]:
        raise ConfigError(f"The reference {mark[0]!r} has no closing brace.", hint=_USUAL)
    kind, colon, name = mark[1].partition(":")
    if colon and kind == "file" and name.strip():
        return Reference("file", name.strip())
    if colon and kind == "keyring" and all(name.rpartition("/")):
        return Reference("keyring", name)
    variable = _VARIABLE.fullmatch(mark[1])
    if variable is None:
        raise ConfigError(f"{mark[0]} is no reference.", hint=_USUAL)
    return Reference("variable", variable[1], variable[2])


def filled_in(text: str, look_up: Callable[[Reference], str]) -> tuple[str, dict[str, str]]:
    """
    Return a text with each reference replaced by what it refers to.

    Args:
        text: As the file writes it.
        look_up: Called with each reference; returns the text that is kept there.

    Returns:
        The text, and what was looked up, as a reference by its text.

    Raises:
        ConfigError: If a reference is malformed, or leads nowhere.

    >>> filled_in("Bearer ${TOKEN}", lambda reference: "hunter2")
    ('Bearer hunter2', {'hunter2': '${TOKEN}'})
    """
    if "$" not in text:
        return text, {}
    whole, found = "", {}
    for part in parts(text):
        if isinstance(part, Reference):
            looked_up = look_up(part)
            found[looked_up] = str(part)
            whole += looked_up
        else:
            whole += part
    return whole, found


def references(value: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Reference]]:
    """
    List the references in a value of a file, each with its place; those that are malformed are passed over.

    Args:
        value: A table, a list or a text.
        at: Where it is.

    >>> [(at, str(one)) for at, one in references({"env": {"A": "${B}"}, "shell_vars": {"C": "${D}"}})]
    [(('env', 'A'), '${B}')]
    """
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key not in FOR_A_SHELL:
                yield from references(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from references(each, (*at, index))
    elif isinstance(value, str) and "${" in value:
        try:
            yield from ((at, part) for part in parts(value) if isinstance(part, Reference))
        except ConfigError:
            return


def written(text: str) -> str:
    """
    Return a text with its references as they are written and without their defaults, which may be secret.

    >>> written("${TOKEN:-hunter2} for $$5")
    '${TOKEN:-***} for $$5'
    """

    def shown(mark: re.Match[str]) -> str:
        name, has_default, _ = mark[0].partition(":-")
        return f"{name}:-***}}" if has_default else mark[0]

    return _MARK.sub(shown, text)


def hidden(text: Any, secrets: Mapping[str, str]) -> Any:
    """
    Return a text with each secret in it replaced by the reference it came from.

    Args:
        text: Such as the message of an error; None stays None.
        secrets: References by what they refer to.

    >>> hidden("region must be a name, not 'hunter2'.", {"hunter2": "${REGION}"})
    "region must be a name, not '${REGION}'."
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True) if text else ():
        # A short one, such as a number, is hidden where it stands by itself.
        pattern = re.escape(secret) if len(secret) > 3 else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(pattern, lambda _, name=secrets[secret]: name, text)  # type: ignore[misc]
        spelled = repr(secret)[1:-1]
        text = text.replace(spelled, secrets[secret]) if len(secret) > 3 and spelled != secret else text
    return text
