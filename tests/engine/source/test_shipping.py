"""Files go to nodes once, and again when they changed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.source.shipping import Shipping
from skyward.link.payload import Payload, views


def _files(payload: Payload) -> dict[str, bytes]:
    names, *contents = (bytes(view) for view in views(payload))
    return dict(zip(json.loads(names), contents, strict=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to import from; what was imported from it is forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_is_sent_once_before_the_call_that_may_need_it(folder: Path) -> None:
    """And whatever is loaded later, when it is."""
    sent: list[Payload] = []
    shipping = Shipping(sky.Image(), sent.append)
    shipping.send_new()
    sent.clear()
    for name in ("shipped_one", "shipped_two"):
        (folder / f"{name}.py").write_text(f"NAME = {name!r}")
        importlib.import_module(name)
        shipping.send_new()
        shipping.send_new()
    assert [{f"{name}.py": f"NAME = {name!r}".encode()} for name in ("shipped_one", "shipped_two")] == [
        _files(payload) for payload in sent
    ]


def test_a_node_that_has_nothing_gets_all_of_it(folder: Path) -> None:
    """Includes too, in one payload."""
    (folder / "data.txt").write_text("data")
    (folder / "shipped_all.py").write_text("")
    importlib.import_module("shipped_all")
    [payload] = Shipping(sky.Image(includes=["data.txt"]), lambda files: None).all()
    assert {"data.txt", "shipped_all.py"} <= set(_files(payload))


def test_nodes_that_have_nothing_share_one_payload(folder: Path) -> None:
    """Until another module is loaded: a thousand nodes that start are no reason to pack a thousand times."""
    shipping = Shipping(sky.Image(), lambda files: None)
    [first], [second] = shipping.all(), shipping.all()
    assert second is first
    (folder / "shipped_later.py").write_text("")
    importlib.import_module("shipped_later")
    [third] = shipping.all()
    assert {"shipped_later.py"} == set(_files(third)) - set(_files(first))


def test_what_changed_is_sent_again(folder: Path) -> None:
    """And what did not change isn't."""
    for name in ("shipped_same", "shipped_other"):
        (folder / f"{name}.py").write_text("1")
        importlib.import_module(name)
    shipping = Shipping(sky.Image(), lambda files: None)
    shipping.send_new()
    assert [] == shipping.changed()
    (folder / "shipped_other.py").write_text("2")
    assert [{"shipped_other.py": b"2"}] == [_files(payload) for payload in shipping.changed()]
    assert [] == shipping.changed()


def test_an_include_that_is_not_there_is_refused_before_anything_is_sent(folder: Path) -> None:
    """With a name that is close."""
    (folder / "data.txt").write_text("data")
    with pytest.raises(sky.ConfigError, match=r"includes names 'date\.txt'"):
        Shipping(sky.Image(includes=["date.txt"]), lambda files: None)
