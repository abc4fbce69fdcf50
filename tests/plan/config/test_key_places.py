"""Each key of a document is found where it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from skyward.plan.config.key_places import KeyPath, KeyPlace, dotted, error_place, key_places

HARD = r'''# comment with [brackets] and "quotes"
top = 1
"quoted \" key" = 'literal # no comment'
a.b."c.d" = 2   # dotted

[ spaced . table ]
long = """
[not.a.table]
key = "no" \""" ""
"""
raw = \'\'\'
x = 1 \'\'\'\'
date = 2026-11-26 09:00:00
list = [ 1, # one
  [2, "]"], { x = 1, y.z = [3] },
]
inline = { p = "}", q = { r = '#' } }
[[many]]
n = 1
[[many]]
n = 2
[many.sub]
m = 3
[[many.deep]]
d = 4
'''.replace("\\'", "'")


def paths(value: Any, at: KeyPath = ()) -> Iterator[KeyPath]:
    """List the paths of all values of a document."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from paths(each, (*at, key))


def test_every_value_has_a_place() -> None:
    """Whatever TOML has to write it, and nothing else has one."""
    assert set(paths(tomllib.loads(HARD))) == set(key_places(HARD))


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        (("top",), "top = 1"),
        (('quoted " key',), '"quoted'),
        (("a", "b", "c.d"), '"c.d" = 2'),
        (("spaced", "table"), "[ spaced"),
        (("spaced", "table", "date"), "date ="),
        (("spaced", "table", "list", 1, 1), '"]"]'),
        (("spaced", "table", "list", 2, "y", "z", 0), "3] }"),
        (("spaced", "table", "inline", "q", "r"), "r = '#'"),
        (("many", 1, "n"), "n = 2"),
        (("many", 1, "sub", "m"), "m = 3"),
        (("many", 1, "deep", 0, "d"), "d = 4"),
    ],
)
def test_a_place_is_where_the_key_is_written(path: KeyPath, begins: str) -> None:
    """Lines and columns are counted from 1."""
    place = key_places(HARD)[path]
    assert HARD.splitlines()[place.line - 1][place.column - 1 :].startswith(begins)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = \n", KeyPlace(1, 5)),
        ("a = 1\na = 2\n", KeyPlace(2, 6)),
        ("[a", KeyPlace(1, 3)),
        ("a = 1\nb = [\n", KeyPlace(2, 6)),
    ],
)
def test_what_is_no_toml_has_a_place(text: str, place: KeyPlace) -> None:
    """Also where it ends too early."""
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    found, why = error_place(text, str(caught.value))
    assert place == found
    assert "(" not in why


def test_a_path_is_written_as_toml_writes_it() -> None:
    """With quotes where they are needed."""
    assert 'pools."my pool".plugins[0]' == dotted(("pools", "my pool", "plugins", 0))
