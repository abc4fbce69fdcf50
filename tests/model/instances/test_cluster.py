"""
What hooks hear, and what they may answer.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from skyward.errors import ConfigError
from skyward.model.instances.cluster import LaunchCommand, Topology


def test_a_command_is_frozen_and_hashable() -> None:
    """A list and a dict become what cannot be changed."""
    command = LaunchCommand(argv=["python", "-c", "one\ntwo "], env={"A": "1"})
    assert ("python", "-c", "one\ntwo ") == command.argv
    assert hash(command) == hash(evolve(command, env=dict(command.env)))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("python -m worker", "list of words, not the text"),
        ([], "must begin with a program"),
        (["", "-m"], "must begin with a program"),
        (["python", 3], "holds 3"),
        (["python", "\0"], "holds"),
    ],
)
def test_a_command_line_is_a_list_of_words(argv: Any, message: str) -> None:
    """What no system could start is refused."""
    with pytest.raises(ConfigError, match=f"argv must .*{message}|argv .*{message}"):
        LaunchCommand(argv=argv)


def test_the_text_of_variables_is_not_shown() -> None:
    """The repr of a command goes to logs, and a variable may be a secret."""
    shown = repr(LaunchCommand(argv=["python"], env={"TOKEN": "secret"}))
    assert "TOKEN" in shown
    assert "secret" not in shown


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_node_has_whole_ranks(wrong: Any) -> None:
    """A number of ranks that cannot be is refused."""
    with pytest.raises(ConfigError, match="ranks_per_node must be a whole number of at least 1"):
        Topology(ranks_per_node=wrong)
