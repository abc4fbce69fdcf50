"""The client's side of a node is packed without a trace of the machine that it was packed on."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.engine.source import bundle
from skyward.engine.source.bundle import runtime_bundle


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of one's own; what was found before is looked for again."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path))
    runtime_bundle.cache_clear()
    yield
    runtime_bundle.cache_clear()


def test_it_holds_files_by_their_place_and_nobodys_name() -> None:
    """Paths are relative; there is no owner, and no compiled file."""
    packed = runtime_bundle()
    with tarfile.open(fileobj=io.BytesIO(packed.read())) as tar:
        members = tar.getmembers()
    names = {member.name for member in members}
    assert {"skyward/__init__.py", "cloudpickle/__init__.py", "attrs/__init__.py"} <= names
    assert [] == [name for name in names if name.startswith(("/", "..")) or "__pycache__" in name]
    assert {(0, 0, "", "", 0o644)} == {(one.uid, one.gid, one.uname, one.gname, one.mode) for one in members}


def test_it_is_packed_once_and_named_by_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process of this machine finds it."""
    first = runtime_bundle()
    runtime_bundle.cache_clear()
    monkeypatch.setattr(bundle, "_packed", lambda directory: pytest.fail("it was packed again"))
    assert first == runtime_bundle()
    assert f"{first.digest}.tar.gz" == first.path.name
