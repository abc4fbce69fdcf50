"""What a bootstrap writes becomes events, and its failure an error."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

import skyward as sky
from skyward.engine.nodes.bootstrap_progress import BootstrapReader

WRITTEN = (
    b"noise before\n@@t0 phase started deps\n@@t0 command pip install x\nCollecting x\r\n@@t0 phase completed deps\n"
    b"@@other phase started fake\n@@t0 done /usr/bin/python3\n"
)


def _progress() -> tuple[BootstrapReader, list[sky.SkywardEvent]]:
    told: list[sky.SkywardEvent] = []
    return BootstrapReader("t0", told.append, "machine m"), told


@given(st.lists(st.integers(1, len(WRITTEN) - 1)))
def test_what_is_written_is_told_however_it_is_cut(cuts: list[int]) -> None:
    """Lines are whole; those with another's token are output."""
    progress, told = _progress()
    edges = [0, *sorted(set(cuts)), len(WRITTEN)]
    found = [progress.take(WRITTEN[begin:end]) for begin, end in pairwise(edges)]
    assert "/usr/bin/python3" == found[-1]
    assert {""} >= set(found[:-1])
    assert [
        ("BootstrapConsole", "noise before"),
        ("BootstrapPhase", "deps started"),
        ("BootstrapCommand", "pip install x"),
        ("BootstrapConsole", "Collecting x"),
        ("BootstrapPhase", "deps completed"),
        ("BootstrapConsole", "@@other phase started fake"),
    ] == [(type(event).__name__, _text(event)) for event in told]


def _text(event: object) -> str:
    if isinstance(event, sky.BootstrapPhase):
        return f"{event.phase} {event.event}"
    return str(getattr(event, "line", None) or getattr(event, "command", ""))


def test_a_failure_says_phase_code_command_and_last_lines() -> None:
    """Those of the phase, and no more than fifteen."""
    progress, told = _progress()
    lines = "".join(f"line {number}.\n" for number in range(20))
    with pytest.raises(
        sky.ProvisionError, match=re.escape("machine m: phase 'deps' of the bootstrap failed with code 3")
    ) as caught:
        progress.take(f"old\n@@t0 phase started deps\n@@t0 command make it\n{lines}@@t0 failed deps 3\n".encode())
    message = str(caught.value)
    assert ": make it\n" in message
    assert ("line 5." in message, "line 4." in message, "old" in message) == (True, False, False)
    assert "deps failed" == _text(told[-1])


def test_where_it_is_is_told_when_time_is_up() -> None:
    """The phase, and what was written last."""
    progress, _ = _progress()
    progress.take(b"@@t0 phase started deps\nCollecting x\nhalf a li")
    assert " It was in phase 'deps'\n  | Collecting x" == progress.last()


def test_bytes_that_are_no_text_harm_nothing() -> None:
    """They are shown as what they are not."""
    progress, told = _progress()
    assert "" == progress.take(b"\xff\xfe\n")
    assert "��" == _text(told[0])


def test_a_phase_begins_with_a_clean_slate() -> None:
    """What an earlier one wrote is not blamed."""
    progress, _ = _progress()
    progress.take(b"old\n@@t0 phase started uv\n")
    assert " It was in phase 'uv'" == progress.last()
    progress.take(b"new\n")
    assert " It was in phase 'uv'\n  | new" == progress.last()


def test_what_a_program_prints_has_no_password() -> None:
    """Neither in the events nor in the error."""
    progress, told = _progress()
    with pytest.raises(sky.ProvisionError) as caught:
        progress.take(b"@@t0 phase started deps\nno access to https://me:p@ss@x.example/simple\n@@t0 failed deps 1\n")
    assert "https://***@x.example/simple" in str(caught.value)
    assert not [one for one in (*map(str, told), str(caught.value)) if "ss@" in one]


def test_a_script_that_could_not_be_started_is_an_error_with_what_was_said() -> None:
    """Its last lines, and what to do where they tell."""
    progress, _ = _progress()
    with pytest.raises(
        sky.ProvisionError, match="machine m: the bootstrap could not start: sh: No space left"
    ) as caught:
        progress.take(b"sh: No space left on device\n\n@@t0 unstarted\n")
    assert "Free some space there" in str(caught.value)
