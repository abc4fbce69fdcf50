"""Results that were not used are on this user's disk as long as no client has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.engine.instances.detached_records import KeptAnswer
from skyward.engine.instances.kept_answers import forget_answers, keep_answers, kept_answers
from skyward.link.frames import Kind, encode
from skyward.link.messages import RESULT, Status
from skyward.link.payload import Payload
from tests.link.test_wire import _result


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this test a state of its own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    return tmp_path / "detached" / "a1.answers"


def answer(call: int, *parts: bytes) -> KeptAnswer:
    """Make one, with its large parts beside it."""
    frame, _, payload = _result(call, *parts)
    assert isinstance(payload, Payload)
    return KeptAnswer(call, frame, payload)


def test_what_is_kept_is_read_as_it_was(state: Path) -> None:
    """Buffers too, for this user alone; a failure has none."""
    failed = encode(Kind.RESULT, RESULT.pack(9, Status.CANCELLED, 0.0, 0.0) + bytes(2))
    keep_answers("a1", [answer(7, b"x" * 300_000), KeptAnswer(9, failed, None)])
    found = kept_answers("a1")
    assert sorted(found) == [7, 9]
    assert [len(buffer) >= 300_000 for buffer in found[7][1]] == [True]
    assert found[9][1] == []
    assert {path.stat().st_mode & 0o777 for path in state.iterdir()} == {0o600}


def test_those_of_the_last_time_are_kept_and_no_others(state: Path) -> None:
    """What was used meanwhile is the program's that used it."""
    keep_answers("a1", [answer(7), answer(8)])
    keep_answers("a1", [answer(8)])
    assert sorted(kept_answers("a1")) == [8]
    forget_answers("a1")
    assert (kept_answers("a1"), state.exists()) == ({}, False)


def test_a_damaged_one_is_passed_over(state: Path) -> None:
    """The others are not lost for it."""
    keep_answers("a1", [answer(7), answer(8)])
    (state / f"{7:016x}").write_bytes(b"no result")
    assert sorted(kept_answers("a1")) == [8]
