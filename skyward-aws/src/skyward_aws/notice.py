"""
What a machine can learn about its own end: EC2 announces it two minutes ahead, at best.

The text of this module is what machines run, so it needs nothing but Python itself.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from datetime import datetime
from typing import NamedTuple

__all__ = ["Notice", "command", "look"]

_TIMEOUT = 2.0
_ACTION = "/latest/meta-data/spot/instance-action"
_REBALANCE = "/latest/meta-data/events/recommendations/rebalance"


class Notice(NamedTuple):
    """Say that a spot machine is reclaimed, or may be soon: whether it is certain, and when, in seconds since 1970."""

    certain: bool
    at: float


def look(base: str | None = None) -> Notice | None:
    """
    Ask the metadata service once; to be called every five seconds, on the machine.

    Args:
        base: Address of the service; None is what `AWS_EC2_METADATA_SERVICE_ENDPOINT` says, else the usual one.

    Returns:
        The notice; None if there is none, or no service to ask.
    """
    base = (base or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254").rstrip("/")
    lasting = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _ask(f"{base}/latest/api/token", lasting, method="PUT")
    if not token:
        return None
    known = {"X-aws-ec2-metadata-token": token}
    for path, field, certain in ((_ACTION, "time", True), (_REBALANCE, "noticeTime", False)):
        if text := _ask(base + path, known):
            at = datetime.strptime(json.loads(text)[field].replace("Z", "+0000"), "%Y-%m-%dT%H:%M:%S%z")
            return Notice(certain=certain, at=at.timestamp())
    return None


def command() -> tuple[str, ...]:
    """Write the command with which a machine asks; it prints nothing, or the notice as JSON."""
    with open(__file__, encoding="utf-8") as file:
        return ("python3", "-c", file.read())


def _ask(url: str, headers: dict[str, str], method: str = "GET") -> str:
    """Return what the service answers; nothing if it has nothing to tell."""
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310
    # The service is on the machine's own link: no proxy leads there.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT) as answer:
            text: str = answer.read().decode()
            return text
    except (urllib.error.URLError, OSError):
        return ""


if __name__ == "__main__":
    found = look()
    if found is not None:
        why = "EC2 reclaims it" if found.certain else "EC2 recommends to move, because it may reclaim it soon"
        sys.stdout.write(json.dumps({"reason": why, "certain": found.certain, "at": found.at}))
