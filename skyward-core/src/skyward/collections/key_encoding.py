r"""
Keys of dicts and elements of sets as bytes, of which equal ones are equal.

    n                     None
    s TEXT                str, in UTF-8
    b BYTES               bytes
    i HEX                 a whole number, whatever its type: 1, 1.0, True and Decimal(1) are one key, as in Python
    f HEX                 any other number that a float equals
    t (LENGTH : KEY)...   tuple
    z (LENGTH : KEY)...   frozenset, in the order of the bytes
    p PICKLE              anything else

What is read is the plain value: 1 for True, a tuple for a named tuple, a str for an enumeration of strings.
Of other keys, those are equal whose pickles are.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

__all__ = ["decode_key", "encode_key"]


def encode_key(key: Any, pickle: Callable[[Any], bytes]) -> bytes:
    """
    Return the bytes of a key.

    Args:
        key: Anything hashable.
        pickle: Pickles what has no form of its own.

    Raises:
        TypeError: If it is not hashable.
        Exception: Whatever pickling raises.

    >>> encode_key(True, repr), encode_key("a", repr), encode_key((1.5, None), repr)
    (b'i1', b'sa', b't21:f0x1.8000000000000p+01:n')
    """
    kind = type(key)
    if kind is str:
        return b"s" + bytes(key.encode("utf-8", "surrogatepass"))
    if kind is int or kind is bool:
        return b"i%x" % key if key >= 0 else b"i-%x" % -key
    if kind is bytes:
        return b"b" + key  # type: ignore[no-any-return]  # known by its type
    if key is None:
        return b"n"
    hash(key)
    return _encode_other(key, pickle)


def _encode_other(key: Any, pickle: Callable[[Any], bytes]) -> bytes:
    """Encode what is equal to a plain value though it may be of another type, or pickle it."""
    for plain in (str, bytes):
        if _is_as(key, plain):
            return encode_key(plain(key) if plain is bytes else str.__str__(key), pickle)
    if isinstance(key, numbers.Number):
        return _encode_number(key) or b"p" + pickle(key)
    if _is_as(key, tuple):
        return b"t" + b"".join(_framed(encode_key(each, pickle)) for each in key)
    if _is_as(key, frozenset):
        return b"z" + b"".join(map(_framed, sorted(encode_key(each, pickle) for each in key)))
    return b"p" + pickle(key)


def _is_as(key: Any, plain: type) -> bool:
    """Return whether a key compares and hashes as a plain type's values do."""
    kind = type(key)
    return isinstance(key, plain) and kind.__eq__ is plain.__eq__ and kind.__hash__ is plain.__hash__


def _encode_number(key: Any) -> bytes | None:
    """Encode a number that an int or a float equals."""
    if isinstance(key, complex):
        if key.imag:
            return None
        key = key.real
    try:
        if (whole := int(key)) == key:
            return encode_key(whole, repr)  # type: ignore[arg-type]  # nothing is pickled
    except (TypeError, ValueError, ArithmeticError):
        # Infinite, or not a number.
        pass
    try:
        if (number := float(key)) == key:
            return b"f" + number.hex().encode()
    except (TypeError, ValueError, ArithmeticError):
        pass
    # Not equal to itself, or beyond floats.
    return b"fnan" if type(key) is float else None


def _framed(data: bytes) -> bytes:
    return b"%d:" % len(data) + data


def decode_key(data: bytes, unpickle: Callable[[bytes], Any]) -> Any:
    """
    Return the key of bytes.

    >>> decode_key(b"t2:i11:n", repr)
    (1, None)
    """
    kind, rest = data[:1], data[1:]
    match kind:
        case b"s":
            return rest.decode("utf-8", "surrogatepass")
        case b"i":
            return int(rest, 16)
        case b"b":
            return rest
        case b"n":
            return None
        case b"f":
            return float("nan") if rest == b"nan" else float.fromhex(rest.decode())
        case b"t":
            return tuple(decode_key(each, unpickle) for each in _parts(rest))
        case b"z":
            return frozenset(decode_key(each, unpickle) for each in _parts(rest))
    return unpickle(rest)


def _parts(data: bytes) -> list[bytes]:
    found = []
    at = 0
    while at < len(data):
        colon = data.index(b":", at)
        end = colon + 1 + int(data[at:colon])
        found.append(data[colon + 1 : end])
        at = end
    return found
