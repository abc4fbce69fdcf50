"""
Steps of a bootstrap are checked where a plugin writes them.
"""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.op import AptInstall, PipInstall, Shell, op


def test_a_command_changes_the_machine_unless_it_says_otherwise() -> None:
    """Text alone may do anything, so that it is not run on the user's own machine."""
    assert Shell("make", scope="machine") == op("make")


def test_steps_pass_as_they_are() -> None:
    """Only text is made into a step."""
    step = PipInstall(["flash-attn"])
    assert step is op(step)


def test_steps_say_what_they_change() -> None:
    """Python packages stay inside the environment, system packages do not."""
    assert ("environment", "machine") == (PipInstall(["six"]).scope, AptInstall(["git"]).scope)


@pytest.mark.parametrize("wrong", [3, None, ["echo"], b"echo"])
def test_what_is_no_step_is_refused(wrong: Any) -> None:
    """Anything but text and steps is named, with what is accepted."""
    with pytest.raises(ConfigError, match="must be a command or one of Shell, PipInstall and AptInstall"):
        op(wrong)


@pytest.mark.parametrize("wrong", ["", "  \n", 3, "echo \0"])
def test_a_command_is_text(wrong: Any) -> None:
    """What no shell could run is refused."""
    with pytest.raises(ConfigError, match="command must be text for a POSIX shell"):
        Shell(wrong)


def test_an_unknown_scope_offers_the_nearest() -> None:
    """A misspelt scope is answered with the one that was probably meant."""
    with pytest.raises(ConfigError, match=r"scope must be .* not 'environ'\. Did you mean \"environment\""):
        Shell("make", scope="environ")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [PipInstall, AptInstall])
def test_there_is_something_to_install(kind: Any) -> None:
    """Installing nothing is a mistake."""
    with pytest.raises(ConfigError, match="packages must name at least one package"):
        kind([])


@pytest.mark.parametrize("wrong", ["--allow-unauthenticated", "git curl"])
def test_a_system_package_is_a_name(wrong: str) -> None:
    """An option, or two names in one, is no package."""
    with pytest.raises(ConfigError, match="one each"):
        AptInstall([wrong])


def test_a_password_in_an_index_is_not_shown() -> None:
    """The repr of a step goes to logs."""
    assert "secret" not in repr(PipInstall(["six"], index_url="https://me:secret@example.com/simple"))


def test_a_repr_has_no_password() -> None:
    """It is logged where a step is skipped on this machine."""
    url = "https://me:p@ss@x.example"
    for step in (Shell(f"curl {url}"), PipInstall([f"own @ {url}"], index_url=url)):
        assert "https://***@x.example" in repr(step)
        assert "ss@" not in repr(step)
