"""Errors of single fields of a request, as a 422's body lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

__all__ = ["wrong_fields"]

_LISTS = ("errors", "error_attributes", "detail", "details", "violations", "invalid_params", "invalid-params", "fields")
_PLACES = ("loc", "location", "pointer", "field", "name", "path", "param", "parameter", "source")
_MESSAGES = ("msg", "message", "detail", "reason", "description", "code")
_MOST = 8


def wrong_fields(body: object) -> tuple[str, ...]:
    """
    Return the errors of single fields in an error's body, each as `field: message`; the first eight.

    Args:
        body: The parsed body.

    >>> wrong_fields({"detail": [{"loc": ["body", "gpu", "count"], "msg": "must be above 0", "type": "value_error"}]})
    ('gpu.count: must be above 0',)
    >>> wrong_fields({"message": "The data was invalid.", "errors": {"name": ["is taken", "is too long"]}})
    ('name: is taken, is too long',)
    >>> wrong_fields({"title": "Unprocessable", "errors": [{"pointer": "#/gpu/id", "detail": "is unknown"}]})
    ('gpu.id: is unknown',)
    >>> wrong_fields({"errors": ["$.image: image not found"]})
    ('$.image: image not found',)
    """
    if not isinstance(body, Mapping):
        return ()
    found: dict[str, None] = {}
    for name in _LISTS:
        found.update(dict.fromkeys(_listed(body.get(name))))
    nested = body.get("error")
    return tuple(found)[:_MOST] or (wrong_fields(nested) if isinstance(nested, Mapping) else ())


def _listed(rows: object) -> Iterator[str]:
    """Yield the errors of a list of them, or of a mapping from fields to messages."""
    if isinstance(rows, Mapping):
        for place, messages in rows.items():
            said = ", ".join(_texts(messages))
            if said:
                yield _one(str(place), said)
    elif isinstance(rows, list):
        for row in rows:
            if isinstance(row, str):
                yield row
            elif isinstance(row, Mapping):
                place = next((_place(row[name]) for name in _PLACES if row.get(name)), "")
                said = next((str(row[name]) for name in _MESSAGES if isinstance(row.get(name), str)), "")
                if place or said:
                    yield _one(place, said)


def _one(place: str, message: str) -> str:
    return ": ".join(filter(None, (place, message.strip().rstrip("."))))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip().rstrip(".")
    elif isinstance(value, Iterable) and not isinstance(value, Mapping):
        for each in value:
            yield from _texts(each)


def _place(value: object) -> str:
    """Return a field's name from a path, a JSON pointer or a JSON path."""
    if isinstance(value, Mapping):
        return next((_place(each) for each in value.values()), "")
    steps = [str(step) for step in value] if isinstance(value, list) else _steps(str(value))
    return ".".join(steps[1:] if len(steps) > 1 and steps[0] in ("body", "query", "path") else steps)


def _steps(text: str) -> list[str]:
    plain = text.removeprefix("#").removeprefix("$")
    return [step for step in plain.replace("/", ".").split(".") if step]
