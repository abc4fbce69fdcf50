"""What a bootstrap writes becomes events, and its failure an error that says where, why and what to do."""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky
from skyward.engine.progress import Progress


def progress() -> tuple[Progress, list[Any]]:
    """Read what a bootstrap of the token `t` writes."""
    told: list[Any] = []
    return Progress("t", told.append, "node 0 (cloud i-1)"), told


def test_phases_and_commands_are_events() -> None:
    """In order; the end gives the interpreter."""
    read, told = progress()
    assert "" == read.take(b"@@t phase started pip\n@@t command uv pip install x\n@@t phase completed pip\n")
    assert "/usr/bin/python3" == read.take(b"@@t done /usr/bin/python3\n")
    assert ["BootstrapPhase", "BootstrapCommand", "BootstrapPhase"] == [type(event).__name__ for event in told]
    assert [("pip", "started"), ("pip", "completed")] == [(event.phase, event.event) for event in told[::2]]
    assert "uv pip install x" == told[1].command


def test_lines_that_are_cut_are_put_together() -> None:
    """Wherever they are cut, also within a letter."""
    read, told = progress()
    text = "réponse\r\n@@t done /py\n".encode()
    answers = [read.take(text[at : at + 1]) for at in range(len(text))]
    assert "/py" == "".join(answers)
    assert ["réponse"] == [event.line for event in told]


def test_what_others_write_is_no_word_of_ours() -> None:
    """Without the token nothing is done."""
    read, told = progress()
    assert "" == read.take(b"@@x done /evil\ndone\n")
    assert ["@@x done /evil", "done"] == [event.line for event in told]


def test_a_failure_tells_phase_command_and_the_last_lines() -> None:
    """And what to do, where the lines say it."""
    read, told = progress()
    lines = b"".join(b"line %d\n" % number for number in range(30))
    read.take(b"@@t phase started pip\n@@t command uv pip install nosuchpkg\n" + lines)
    with pytest.raises(sky.ProvisionError, match="phase 'pip' of the bootstrap failed with code 1") as caught:
        read.take(b"Because nosuchpkg was not found in the package registry\n@@t failed pip 1\n")
    said = str(caught.value)
    assert "node 0 (cloud i-1)" in said
    assert ": uv pip install nosuchpkg" in said
    assert ("| line 29" in said, "| line 10\n" in said) == (True, False)
    assert "Check the package names" in (caught.value.hint or said)
    assert ("pip", "failed") == (told[-1].phase, told[-1].event)


def test_a_phase_begins_with_a_clean_slate() -> None:
    """What an earlier one wrote is not blamed."""
    read, _ = progress()
    read.take(b"old\n@@t phase started uv\n")
    assert " It was in phase 'uv'" == read.last()
    read.take(b"new\n")
    assert " It was in phase 'uv'\n  | new" == read.last()
