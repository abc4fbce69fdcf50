"""References lead to variables, files and keyrings; what is read there is hidden from then on."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from skyward.engine.pool import kept_texts
from skyward.engine.pool.kept_texts import look_up
from skyward.errors import ConfigError
from skyward.plan.config.references import Reference


def test_a_variable_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not set has the default, or is named."""
    reference = Reference("variable", "SKYWARD_TEST_TOKEN")
    with pytest.raises(ConfigError, match=r"SKYWARD_TEST_TOKEN is not set.*:-default\}"):
        look_up(reference, "skyward.toml")
    assert "a" == look_up(Reference("variable", "SKYWARD_TEST_TOKEN", "a"), "skyward.toml")
    monkeypatch.setenv("SKYWARD_TEST_TOKEN", "hunter2-of-a-test")
    assert "hunter2-of-a-test" == look_up(reference, "skyward.toml")
    assert "The key *** is refused." == str(ConfigError("The key hunter2-of-a-test is refused."))


def test_what_every_path_has_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The home would be hidden in most errors."""
    monkeypatch.setenv("HOME", "/of/somebody-in-a-test")
    assert "/of/somebody-in-a-test" == look_up(Reference("variable", "HOME"), "skyward.toml")
    assert "There is no /of/somebody-in-a-test/x." == str(ConfigError("There is no /of/somebody-in-a-test/x."))


def test_a_file_is_relative_to_the_one_that_refers_to_it(tmp_path: Path) -> None:
    """Its last line break is none of the key's."""
    (tmp_path / "key").write_text("one\ntwo\n")
    assert "one\ntwo" == look_up(Reference("file", "key"), str(tmp_path / "skyward.toml"))


def test_what_is_no_small_file_is_refused(tmp_path: Path) -> None:
    """Without reading it: a named pipe would block."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a" * 70_000)
    (tmp_path / "bytes").write_bytes(b"\xff")
    causes = {"pipe": "no file", "large": "more than 65536 bytes", "bytes": "no text", "none": "No such file"}
    for name, cause in causes.items():
        with pytest.raises(ConfigError, match=rf"\$\{{file:{name}\}} refers to {tmp_path}/{name}, .*{cause}"):
            look_up(Reference("file", name), str(tmp_path / "skyward.toml"))


def test_a_keyring_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is needed then, and only then; an answer that does not come is not waited for."""
    reference = Reference("keyring", "https://a.example/b/me")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=r"needs the library keyring, .*Type: pip install keyring"):
        look_up(reference, "skyward.toml")

    library = ModuleType("keyring")
    monkeypatch.setitem(sys.modules, "keyring", library)
    monkeypatch.setattr(library, "get_password", lambda service, user: f"{service} {user}", raising=False)
    assert "https://a.example/b me" == look_up(reference, "skyward.toml")
    monkeypatch.setattr(library, "get_password", lambda service, user: None)
    with pytest.raises(ConfigError, match=r"no password of 'me' for 'https://a.example/b'.*keyring set"):
        look_up(reference, "skyward.toml")
    monkeypatch.setattr(library, "get_password", lambda service, user: {}["locked"])
    with pytest.raises(ConfigError, match="cannot be asked: KeyError: 'locked'"):
        look_up(reference, "skyward.toml")
    released = threading.Event()
    monkeypatch.setattr(kept_texts, "KEYRING_TIMEOUT", 0.01)
    monkeypatch.setattr(library, "get_password", lambda service, user: released.wait(10))
    with pytest.raises(ConfigError, match=r"did not answer within 0.01 s. Unlock it"):
        look_up(reference, "skyward.toml")
    released.set()
