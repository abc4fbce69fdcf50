"""
What a setting may be: the checks that every value a user writes goes through.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.duration import seconds

__all__ = [
    "choice",
    "known_only",
    "lasting",
    "nearest",
    "optional",
    "positive",
    "real",
    "suggesting",
    "switch",
    "text",
    "texts",
    "waiting",
    "whole",
]

# What attrs calls after a field is set: the instance, its attribute, the value.
Check = Callable[[Any, Any, Any], None]

Value = TypeVar("Value")

_OTHER_WORDS = {
    "packages": "pip",
    "requirements": "pip",
    "dependencies": "pip",
    "environment": "env",
    "instances": "nodes",
    "workers": "concurrency",
    "gpu": "accelerator",
    "gpus": "accelerator",
    "spot": "allocation",
    "max_retries": "retries",
}
"""Other libraries' names of settings, and the names here."""

_OF_POOL = 'Disks are of the pool: volumes=[sky.Disk("NAME", mount="/data")] in sky.Compute or sky.Spec.'
_ELSEWHERE = dict.fromkeys(("volume", "mount"), _OF_POOL)
"""Settings that providers once had, and where they are written now."""


def nearest(wrong: object, known: Iterable[str]) -> str | None:
    """
    Return the known name that a wrong one was most likely meant to be.

    Args:
        wrong: What was written, of any type.
        known: Every name that would have been right.

    >>> nearest("cheapst", ["cheapest", "first"])
    'cheapest'
    >>> nearest("zzz", ["cheapest", "first"]) is None
    True
    """
    if not isinstance(wrong, str):
        return None
    # Late, because it is only needed once something is wrong.
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    found = get_close_matches(wrong.lower(), names, n=1)
    return names[found[0]] if found else None


def known_only(given: Iterable[str], known: Iterable[str], taker: str) -> None:
    """
    Refuse keywords that are unknown.

    Args:
        given: The keywords that were written.
        known: Those that there are.
        taker: What they were written for.

    Raises:
        UsageError: If one is unknown; the one that it was most likely meant to be is offered.

    >>> known_only(["retry"], ["retries", "timeout"], "@sky.function")
    Traceback (most recent call last):
    ...
    skyward.errors.UsageError: @sky.function has no setting 'retry'. Did you mean 'retries'?
    """
    names = tuple(known)
    for keyword in given:
        if keyword not in names:
            other = _OTHER_WORDS.get(keyword)
            close = other if other in names else nearest(keyword, names)
            hint = f"Did you mean {close!r}?" if close else f"It has {', '.join(names)}."
            if "volumes" not in names:
                hint = _ELSEWHERE.get(keyword, hint)
            raise UsageError(f"{taker} has no setting {keyword!r}.", hint=hint)


def suggesting(kind: type[Value]) -> type[Value]:
    """
    Add to a class of settings an error that offers the nearest keyword for an unknown one, and names what is missing.

    Args:
        kind: An attrs class; its `USUAL` says what to write instead of too little.
    """
    # Late, because what has no settings to check does without it.
    import attrs

    init = kind.__init__
    fields = [field for field in attrs.fields(kind) if field.init]  # type: ignore[arg-type]  # an attrs class
    names = tuple(field.alias or field.name for field in fields)
    needed = tuple(name for name, field in zip(names, fields, strict=True) if field.default is attrs.NOTHING)
    usual = getattr(kind, "USUAL", None)

    @functools.wraps(init)
    def checked(self: Value, *args: Any, **keywords: Any) -> None:
        known_only(keywords, names, f"sky.{kind.__name__}")
        if missing := [name for name in needed[len(args) :] if name not in keywords]:
            given = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in keywords.items())])
            raise UsageError(f"sky.{kind.__name__}({given}) lacks {' and '.join(missing)}.", hint=usual)
        init(self, *args, **keywords)

    setattr(kind, "__init__", checked)  # noqa: B010  # its type is that of `object`
    return kind


def choice(value: object, parameter: str, accepted: Iterable[str], *, also: str = "") -> str:
    """
    Return the value if it is one of the accepted words.

    Args:
        value: What was written.
        parameter: Name of the parameter it was given for.
        accepted: The words to choose from, as they are to be listed.
        also: What else the parameter takes, in words, for the error.

    Raises:
        ConfigError: If it is none of them; the nearest one is offered.

    >>> choice("frist", "selection", ["cheapest", "first"])
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: selection must be "cheapest" or "first", not 'frist'. Did you mean "first"?
    """
    words = tuple(accepted)
    if isinstance(value, str) and value in words:
        return value
    close = nearest(value, words)
    listed = _listed([*(f'"{word}"' for word in words), *([also] if also else [])])
    raise ConfigError(
        f"{parameter} must be {listed}, not {value!r}.", hint=f'Did you mean "{close}"?' if close else None
    )


def whole(value: object, parameter: str, *, least: int = 0) -> int:
    """
    Return the value as an int, refusing what is no whole number.

    Args:
        value: What was written; the integers of other libraries are accepted.
        parameter: Name of the parameter it was given for.
        least: The smallest number that makes sense.

    Raises:
        ConfigError: If it is a bool, no whole number, or too small.

    >>> whole(4, "concurrency", least=1)
    4
    >>> whole(True, "concurrency", least=1)
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: concurrency must be a whole number of at least 1, not True.
    """
    wanted = f"{parameter} must be a whole number of at least {least}, not {value!r}."
    if isinstance(value, bool):
        raise ConfigError(wanted)
    try:
        number = operator.index(cast("int", value))
    except TypeError as error:
        raise ConfigError(wanted) from error
    if number < least:
        raise ConfigError(wanted)
    return number


def lasting(value: object, parameter: str) -> float:
    """
    Return a time limit in seconds, which has to be more than none.

    Raises:
        ConfigError: If it is no finite number of seconds above zero.

    >>> lasting(0, "timeout")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: timeout must be more than 0 seconds, not 0.
    """
    limit = seconds(value, parameter)
    if limit == 0:
        raise ConfigError(f"{parameter} must be more than 0 seconds, not {value!r}.")
    return limit


def positive(value: object, parameter: str) -> float:
    """
    Return the value as a float, refusing what is no number above zero.

    Raises:
        ConfigError: If it is no number, not finite, or not above zero.

    >>> positive(2, "vcpus")
    2.0
    """
    wanted = f"{parameter} must be a finite number above zero, not {value!r}."
    number = _finite(value, wanted)
    if number <= 0:
        raise ConfigError(wanted)
    return number


def real(value: object, parameter: str, *, least: float, most: float = math.inf) -> float:
    """
    Return the value as a float, refusing what is no number between two bounds.

    Args:
        value: What was written.
        parameter: Name of the parameter it was given for.
        least: The smallest number that makes sense.
        most: The largest one.

    Raises:
        ConfigError: If it is no number, not finite, or out of bounds.

    >>> real(2, "backoff", least=1)
    2.0
    """
    bounds = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
    wanted = f"{parameter} must be a finite number {bounds}, not {value!r}."
    number = _finite(value, wanted)
    if not least <= number <= most:
        raise ConfigError(wanted)
    return number


def text(value: object, parameter: str) -> str:
    """
    Return the value without the blanks around it, refusing what is no line of text.

    Raises:
        ConfigError: If it is no str, blank, or holds a line break or NUL.

    >>> text(" us-east-1 ", "region")
    'us-east-1'
    """
    if not isinstance(value, str):
        raise ConfigError(f"{parameter} must be text, not {value!r}.")
    line = value.strip()
    if not line:
        raise ConfigError(f"{parameter} must not be blank, but is {value!r}.")
    if any(character in line for character in "\n\r\0"):
        raise ConfigError(f"{parameter} must be one line of text, not {value!r}.")
    return line


def texts(value: object, parameter: str) -> tuple[str, ...]:
    """
    Return a list of text as a tuple, refusing a bare string.

    Args:
        value: Any iterable of str.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If it is a bare string, no iterable, or holds anything but text.

    >>> texts(["torch", "numpy"], "pip")
    ('torch', 'numpy')
    >>> texts("torch", "pip")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: pip must be a list of text, not the text 'torch'. Write pip=['torch'].
    """
    if isinstance(value, str):
        # Several names in one string are as usual a mistake as one without brackets.
        parts = [part for part in value.replace(",", " ").split() if part]
        raise ConfigError(
            f"{parameter} must be a list of text, not the text {value!r}.", hint=f"Write {parameter}={parts}."
        )
    if not isinstance(value, Iterable) or isinstance(value, (bytes, dict)):
        raise ConfigError(f"{parameter} must be a list of text, not {value!r}.")
    return tuple(text(item, f"{parameter}[{index}]") for index, item in enumerate(value))


def switch(instance: Any, attribute: Any, value: object) -> None:
    """
    Refuse anything but True and False; an attrs validator.

    Raises:
        ConfigError: If the value is no bool.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{attribute.name} must be True or False, not {value!r}.")


def waiting(instance: Any, attribute: Any, value: object) -> None:
    """
    Refuse what is no length of time; an attrs validator.

    Raises:
        ConfigError: If the value is no finite number of seconds of at least zero.
    """
    seconds(value, attribute.name)


def optional(check: Callable[[object, str], object]) -> Check:
    """
    Return an attrs validator that accepts None and passes all else to the check.

    Args:
        check: Called with the value and the field's name; raises what is to be raised.
    """

    def validate(instance: Any, attribute: Any, value: object) -> None:
        if value is not None:
            check(value, attribute.name)

    return validate


def _listed(words: list[str]) -> str:
    """Return words as a sentence lists them."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _finite(value: object, wanted: str) -> float:
    """Return a finite number, or raise the error that says what is wanted."""
    if isinstance(value, (bool, str, bytes)):
        raise ConfigError(wanted)
    try:
        number = float(cast("float", value))
    except (OverflowError, TypeError, ValueError) as error:
        raise ConfigError(wanted) from error
    if not math.isfinite(number):
        raise ConfigError(wanted)
    return number
