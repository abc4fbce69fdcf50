"""What travels about a store is read as it was written, and nothing else is."""

from __future__ import annotations

import json

import pytest

from skyward import errors
from skyward.errors import ProtocolError, SkywardError
from skyward.link.store_said import ServerEnded, StoreGone, StorePlace, Where, decode, encode_refusal


@pytest.mark.parametrize(
    "said", [Where(), StorePlace("/s", "secret", "g"), StoreGone("g"), ServerEnded(3, "SIGKILL")], ids=repr
)
def test_it_is_read_as_it_was_written(said: Where | StorePlace | StoreGone | ServerEnded) -> None:
    """Each of them."""
    assert said == decode(said.encode())


def test_a_password_is_not_shown() -> None:
    """Neither in a log nor in a traceback."""
    assert "secret" not in repr(StorePlace("/s", "secret", "g"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.UsageError("no"), errors.UsageError),
        (errors.ProvisionError("no"), errors.ProvisionError),
        (errors.UnreachableError("no"), errors.ProvisionError),
        (errors.PoolClosedError("no"), errors.PoolClosedError),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_refusal_is_raised_as_what_it_is(error: SkywardError, kind: type[SkywardError]) -> None:
    """Or as what comes nearest."""
    assert kind is type(decode(encode_refusal(error)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"said": "other"}',
        b'{"said": "at", "path": "/s", "password": "p"}',
        b'{"said": "lost", "generation": 3}',
        b'{"said": "ended", "number": "3", "why": ""}',
        b'{"said": "ended", "number": true, "why": ""}',
        b'{"said": "none", "error": "SystemExit", "message": "no"}',
        b'{"said": "none", "error": "UsageError", "message": 3}',
        json.dumps({"said": ["where"]}).encode(),
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    """A node may send what it likes."""
    with pytest.raises(ProtocolError):
        decode(body)


def test_a_long_reason_is_cut() -> None:
    """Its end says most, and a frame has a limit."""
    assert "!" == ServerEnded(1, "x" * 5000 + "!").encode()[-3:-2].decode()
    assert 1200 > len(ServerEnded(1, "x" * 5000).encode())
