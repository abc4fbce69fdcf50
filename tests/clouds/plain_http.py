"""Requests to a test cloud as any program sends them, without an SDK and without our own client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """
    The reply to a request.

    Args:
        status: Its status.
        body: Its body: what JSON holds, else text; None if it is empty.
        headers: Its headers.
    """

    status: int
    body: Any
    headers: Message


def send(url: str, method: str, key: str, body: Any = None) -> Reply:
    """Send a request with a bearer token, its body as JSON, and return the reply of any status."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return Reply(answer.status, _read(answer.read()), answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, _read(error.read()), error.headers)


def _read(text: bytes) -> Any:
    if text[:1] in (b"{", b"["):
        return json.loads(text)
    return text.decode() or None
