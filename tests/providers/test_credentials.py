"""The key of an account is found where its cloud's own tools look as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from skyward.errors import NoCredentialsError
from skyward.providers.credentials import Credential

SHED = Credential(
    provider="shed",
    title="Shed",
    parameter="token",
    variables=("SHED_TOKEN", "SHED_ACCESS_TOKEN"),
    hint="Ask Shed.",
    word="token",
)


def test_places_are_looked_at_in_order(tmp_path: Path) -> None:
    """What is given, then variables, then files below the home directory; an empty one counts for nothing."""
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "key").write_text("file\n")
    environment = {"HOME": str(tmp_path), "SHED_TOKEN": "", "SHED_ACCESS_TOKEN": "second"}
    shed = evolve(SHED, files=("~/none", "~/empty", "~/key"))
    assert shed.find("given", environment) == "given"
    assert shed.find(None, environment) == "second"
    assert shed.find(None, {**environment, "SHED_TOKEN": "first"}) == "first"
    assert shed.find("", {"HOME": str(tmp_path)}) == "file"


def test_without_a_key_the_error_lists_the_places(tmp_path: Path) -> None:
    """And says how to get one."""
    said = r"There is no token for Shed\. Looked at: token=, SHED_TOKEN, SHED_ACCESS_TOKEN, ~/key\. Ask Shed\."
    with pytest.raises(NoCredentialsError, match=said) as caught:
        evolve(SHED, files=("~/key",)).find(None, {"HOME": str(tmp_path)})
    assert caught.value.provider == "shed"
    assert not SHED.known(None, {"HOME": str(tmp_path)})


def test_the_users_settings_are_where_xdg_says(tmp_path: Path) -> None:
    """A file below `~/.config` is below `XDG_CONFIG_HOME` where that is set."""
    (tmp_path / "key").write_text("file\n")
    shed = evolve(SHED, files=("~/.config/key",))
    assert shed.find(None, {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path)}) == "file"
    with pytest.raises(NoCredentialsError, match=r"SHED_ACCESS_TOKEN, ~/\.config/key\."):
        shed.find(None, {"HOME": "/nowhere"})
