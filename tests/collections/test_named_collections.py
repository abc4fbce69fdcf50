"""Collections by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skyward.collections.named_collections import Collections
from skyward.errors import CollectionError, UsageError
from tests.collections.store_server import Opener

KINDS = ("dict", "set", "counter", "queue", "lock", "barrier")


def open_kind(collections: Collections, kind: str, name: str) -> object:
    """Open a collection of some kind."""
    return getattr(collections, kind)(name, *((2,) if kind == "barrier" else ()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_one_kind(opened: Opener, kind: str) -> None:
    """Any other kind of this name is refused, by all holders; the same one is not."""
    open_kind(opened("one"), kind, "x")
    other = opened("other")
    for wrong in KINDS:
        if wrong != kind:
            with pytest.raises(UsageError, match=f"'x' is a {kind} in this pool, and cannot be a {wrong} as well"):
                open_kind(other, wrong, "x")
    assert f"sky.{kind}('x'" in repr(open_kind(other, kind, "x"))


def test_names_do_not_meet(collections: Collections) -> None:
    """Names that contain each other, or what is used within the store, are apart."""
    for number, name in enumerate(("a", "a:b", "b", "once:a", "a b", "é")):
        collections.counter(name).increment(number)
        collections.counter(name).increment(0, once="a")
    assert [0, 1, 2, 3, 4, 5] == [collections.counter(name).value for name in ("a", "a:b", "b", "once:a", "a b", "é")]


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 1001, None, b"x", 3])
def test_a_name_is_text(collections: Collections, name: object) -> None:
    """Anything else is refused."""
    with pytest.raises(UsageError, match="name is a str of 1 to 1000 characters"):
        collections.dict(name)  # type: ignore[arg-type]


def test_collections_load_the_library_late() -> None:
    """Importing the room loads neither valkey nor asyncio's client."""
    code = (
        "import sys, skyward, skyward.collections.named_collections;"
        " print(any(name.startswith('valkey') for name in sys.modules))"
    )
    assert b"False\n" == subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout


def test_what_was_not_used_is_finished_without_a_store() -> None:
    """A task that opens no collection asks for no address."""

    def refuse() -> None:
        raise AssertionError

    Collections(refuse).finish(True)  # type: ignore[arg-type]


def test_a_collection_is_closed_with_its_task(opened: Opener) -> None:
    """What goes on after the end of a task does not use its holder's name; to finish again does no harm."""
    collections = opened("one")
    counter = collections.counter("c")
    collections.finish(True)
    collections.finish(False)
    with pytest.raises(CollectionError, match="whose task has ended"):
        counter.increment()
