"""The key of an account is found where its cloud's own tools look as well."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    files = ("~/none", "~/empty", "~/key")
    assert SHED.find("given", environment, files) == "given"
    assert SHED.find(None, environment, files) == "second"
    assert SHED.find(None, {**environment, "SHED_TOKEN": "first"}, files) == "first"
    assert SHED.find("", {"HOME": str(tmp_path)}, files) == "file"


def test_without_a_key_the_error_lists_the_places(tmp_path: Path) -> None:
    """And says how to get one."""
    said = r"There is no token for Shed\. Looked at: token=, SHED_TOKEN, SHED_ACCESS_TOKEN, ~/key\. Ask Shed\."
    with pytest.raises(NoCredentialsError, match=said) as caught:
        SHED.find(None, {"HOME": str(tmp_path)}, ("~/key",))
    assert caught.value.provider == "shed"
    assert not SHED.known(None, {"HOME": str(tmp_path)}, ("~/key",))
