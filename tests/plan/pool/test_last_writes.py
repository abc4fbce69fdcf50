"""A machine is kept as long as writing goes on, and for a while after it has come to a standstill."""

from __future__ import annotations

from attrs import evolve

from skyward.plan.pool.last_writes import LastWrites, WriteVerdict, looked, named

LEFT = LastWrites(unwritten={"v": ["a", "b"]}, moved=5, errors=0, since=0.0)


def verdicts(*states: LastWrites, kept: float | None = 100.0) -> list[WriteVerdict]:
    """Return what is said at each look."""
    before, said = None, []
    for state in states:
        before, verdict = looked(before, state, stalled=60.0, kept=kept)
        said.append(verdict)
    return said


def test_what_goes_on_is_waited_for() -> None:
    """However long it takes: files go, or bytes of a large one."""
    fewer = evolve(LEFT, unwritten={"v": ["b"]}, since=1000.0)
    assert [WriteVerdict.WAIT] * 3 == verdicts(LEFT, fewer, evolve(fewer, moved=9, since=9000.0))


def test_a_standstill_is_said_once_and_ends() -> None:
    """After the warning the machine is kept for a while."""
    states = [evolve(LEFT, since=time) for time in (0.0, 59.0, 60.0, 100.0, 159.0, 160.0)]
    wait, warn, give_up = WriteVerdict
    assert [wait, wait, warn, wait, wait, give_up] == verdicts(*states)


def test_reading_a_file_again_and_again_is_a_standstill() -> None:
    """The store refuses it each time."""
    states = [evolve(LEFT, moved=5 * count, errors=count, since=30.0 * count) for count in range(4)]
    assert WriteVerdict.WARN in verdicts(*states)


def test_one_without_a_limit_is_kept() -> None:
    """Until the user says otherwise."""
    states = [evolve(LEFT, since=time) for time in (0.0, 60.0, 1e9)]
    assert WriteVerdict.GIVE_UP not in verdicts(*states, kept=None)


def test_many_files_are_named_by_a_few() -> None:
    """And their number."""
    said = named({"the volume 'b' at /d": [f"f{number}" for number in range(50)]})
    assert said.startswith("50 files of the volume 'b' at /d (f0, ")
    assert said.endswith(", …)")
