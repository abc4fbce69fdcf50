"""A worker asks its client for a few things at once, and each answer finds its question."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from skyward.errors import TransportError, UsageError
from skyward.link.frames import Parser
from skyward.link.keeping import WINDOW, KeepMessage, decode_kept, encode_kept
from skyward.link.payload import Payload
from skyward.node.worker import client_files
from skyward.node.worker.client_files import Keeping


class Client:
    """Read what a worker sends."""

    def __init__(self) -> None:
        self.asked: list[KeepMessage] = []
        self.keeping = Keeping(self.take)

    def take(self, frame: bytes, payload: Payload) -> None:
        (parsed,) = Parser().feed(frame)
        self.asked.append(decode_kept(parsed.body, [os.dup(fd) for fd in payload.fds]))

    def answer(self, place: int, head: dict[str, Any], data: bytes = b"") -> None:
        body, payload = encode_kept(self.asked[place].number, head, data)
        self.keeping.received(body, [os.dup(fd) for fd in payload.fds])


def test_each_question_has_its_answer() -> None:
    """In whichever order they come."""
    client = Client()
    first, second = client.keeping.ask({"do": "list"}), client.keeping.ask({"do": "read"}, b"x")
    client.answer(1, {"is": "second"}, b"bytes")
    assert (False, True) == (first.answered, second.answered)
    client.answer(0, {"is": "first"})
    assert ({"is": "first"}, {"is": "second"}) == (first.result().head, second.result().head)
    assert b"bytes" == bytes(second.result().data)


def test_what_fails_is_raised() -> None:
    """With the system's number."""
    client = Client()
    request = client.keeping.ask({"do": "write"})
    client.answer(0, {"error": "No space left on device", "errno": 28})
    with pytest.raises(OSError, match="No space left on device") as caught:
        request.result()
    assert 28 == caught.value.errno


def test_no_more_are_under_way_than_the_window() -> None:
    """The next one waits for an answer, to whichever."""
    client = Client()
    for _ in range(WINDOW):
        client.keeping.ask({"do": "write"})
    later = threading.Thread(target=client.keeping.ask, args=({"do": "last"},))
    later.start()
    assert WINDOW == len(client.asked)
    client.answer(2, {})
    later.join(20)
    assert {"do": "last"} == client.asked[-1].head


def test_a_client_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an answer is waited for, or room for a question."""
    monkeypatch.setattr(client_files, "PATIENCE", 0.05)
    monkeypatch.setattr(client_files, "_LOOK", 0.01)
    client = Client()
    requests = [client.keeping.ask({"do": "write"}) for _ in range(WINDOW)]
    with pytest.raises(TransportError, match="did not answer within PATIENCE"):
        requests[0].result()
    with pytest.raises(TransportError, match="did not answer within PATIENCE"):
        client.keeping.ask({"do": "more"}, patience=0.05)


def test_an_answer_to_another_process_is_passed_over() -> None:
    """It makes no room either."""
    client = Client()
    body, payload = encode_kept(1, {})
    client.keeping.received(body, payload.fds)
    for _ in range(WINDOW):
        client.keeping.ask({"do": "write"})
    assert WINDOW == len(client.asked)


def test_a_forked_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would write into the middle of what the worker sends."""
    client = Client()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(UsageError, match="A process that a task forked"):
        client.keeping.ask({"do": "list"})
