"""
Mutual authentication of ranks at an open port: a challenge each way, answered with the pool's secret.

The secret comes from the client, over its link, and is new for each use of a pool.
What listens asks first; what comes answers with what it says, and asks back; the last answer proves that it is the
head's:

    listens  {"nonce": a}
    comes    {..., "nonce": b, "proof": HMAC-SHA-256 of "comes", a, and all that it says}
    listens  {"answer": ..., "proof": HMAC-SHA-256 of "listens", b, and the answer}

A proof is of no use elsewhere: nonces are random, and each is used once.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import Any

__all__ = ["answer_of", "introduced", "introduction", "nonce", "question", "reply"]

_COMES, _LISTENS = "comes", "listens"


def nonce() -> str:
    """Make what is asked; it is asked once."""
    return secrets.token_hex(16)


def question(asked: str) -> bytes:
    """
    Render the line that what listens begins with.

    Args:
        asked: A nonce.
    """
    return json.dumps({"nonce": asked}).encode() + b"\n"


def introduction(secret: str, line: bytes, said: dict[str, Any]) -> tuple[bytes, str]:
    """
    Render what a rank says to what listens.

    Args:
        secret: The pool's.
        line: The question.
        said: What it says.

    Returns:
        The line, and the nonce that the answer has to meet.

    Raises:
        ValueError: If that is no question.
    """
    asked = _read(line)
    if not isinstance(asked, dict) or not isinstance(asked.get("nonce"), str):
        raise ValueError("what listens there asks for nothing")
    back = nonce()
    body = {**said, "nonce": back}
    return json.dumps({**body, "proof": _proof(secret, _COMES, asked["nonce"], body)}).encode() + b"\n", back


def introduced(secret: str, asked: str, line: bytes) -> dict[str, Any] | None:
    """
    Read what a connection sends; None from one that does not know the secret, or makes no sense.

    Args:
        secret: The pool's.
        asked: The nonce that it was asked.
        line: What it says.

    >>> line, _ = introduction("s", question("a"), {"rank": 1})
    >>> introduced("s", "a", line)["rank"]
    1
    >>> introduced("s", "another", line), introduced("other", "a", line)
    (None, None)
    """
    try:
        body = json.loads(line)
        good = hmac.compare_digest(body.pop("proof").encode(), _proof(secret, _COMES, asked, body).encode())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return body if good and isinstance(body.get("nonce"), str) else None


def reply(secret: str, asked: str, answer: Any) -> bytes:
    """
    Render the answer of what listens.

    Args:
        secret: The pool's.
        asked: The connection's nonce.
        answer: The answer, plain data.
    """
    return json.dumps({"answer": answer, "proof": _proof(secret, _LISTENS, asked, answer)}).encode() + b"\n"


def answer_of(secret: str, asked: str, line: bytes) -> Any:
    """
    Read the answer of what listens.

    Args:
        secret: The pool's.
        asked: The nonce that it was asked.
        line: The answer.

    Raises:
        ValueError: If it does not know the secret.

    >>> line, asked = introduction("s", question("a"), {})
    >>> answer_of("s", asked, reply("s", asked, ["a", "b"]))
    ['a', 'b']
    """
    body = _read(line)
    if not isinstance(body, dict) or not isinstance(body.get("proof"), str):
        raise ValueError("what listens there proves nothing")
    answer = body.get("answer")
    if not hmac.compare_digest(body["proof"].encode(), _proof(secret, _LISTENS, asked, answer).encode()):
        raise ValueError("what listens there does not know the pool's secret")
    return answer


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("what listens there is nested too deep") from None


def _proof(secret: str, role: str, asked: str, said: Any) -> str:
    text = json.dumps([role, asked, said], sort_keys=True)
    return hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()
