"""What proves that both ends know a pool's secret, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skyward.node.task.challenge import answer_of, introduced, introduction, nonce, question, reply

SAID = {"rank": 1, "value": "10.0.0.7:2222"}


def changed(line: bytes, **changes: Any) -> bytes:
    """Say something else with the same proof."""
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n"


def test_both_sides_that_know_the_secret_accept_each_other() -> None:
    """Whatever is said."""
    asked = nonce()
    line, back = introduction("secret", question(asked), SAID)
    its = introduced("secret", asked, line)
    assert its is not None
    assert SAID.items() <= its.items()
    assert back == its["nonce"]
    assert ["a", None] == answer_of("secret", back, reply("secret", back, ["a", None]))


@pytest.mark.parametrize(
    "line",
    [
        introduction("guess", question("a"), SAID)[0],
        introduction("secret", question("before"), SAID)[0],
        changed(introduction("secret", question("a"), SAID)[0], value="evil:1"),
        changed(introduction("secret", question("a"), SAID)[0], proof=7),
        json.dumps(SAID).encode(),
        reply("secret", "a", SAID),
        b"[]",
        b"\xff",
        b"[" * 100_000,
    ],
    ids=["guessed", "of before", "changed", "no text", "none", "an answer", "a list", "no JSON", "deep"],
)
def test_a_connection_without_proof_is_none(line: bytes) -> None:
    """A wrong secret, a proof of before, changed words, an answer sent back, and what is no JSON."""
    assert introduced("secret", "a", line) is None


@pytest.mark.parametrize(
    "line",
    [
        reply("guess", "b", ["x"]),
        reply("secret", "before", ["x"]),
        changed(reply("secret", "b", ["x"]), answer=["evil:1"]),
        introduction("secret", question("b"), {"answer": ["evil:1"]})[0],
        b'{"answer": ["x"]}',
        b"[]",
        b"GET / HTTP/1.1",
    ],
    ids=["guessed", "of before", "changed", "a connection's", "none", "a list", "no JSON"],
)
def test_an_answer_without_proof_is_refused(line: bytes) -> None:
    """Likewise; a rank's own words sent back to it prove nothing."""
    with pytest.raises(ValueError, match=r"prove|secret|Expecting"):
        answer_of("secret", "b", line)


@pytest.mark.parametrize("line", [b"[]", b'{"nonce": 1}', b"{}", b"SSH-2.0"], ids=["list", "number", "none", "no JSON"])
def test_a_malformed_question_is_not_answered(line: bytes) -> None:
    """It is none of ours."""
    with pytest.raises(ValueError, match=r"asks for nothing|Expecting"):
        introduction("secret", line, SAID)


def test_nesting_without_end_is_refused_as_any_nonsense() -> None:
    """An impostor at the head's port must not break a rank by it."""
    line = b"[" * 100_000
    with pytest.raises(ValueError, match="nested too deep"):
        introduction("secret", line, SAID)
    with pytest.raises(ValueError, match="nested too deep"):
        answer_of("secret", "b", line)
