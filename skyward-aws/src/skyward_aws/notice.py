"""What a machine can learn about its own end: EC2 tells it two minutes ahead, at best."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from datetime import UTC, datetime

from attrs import frozen

__all__ = ["Notice", "look"]

_TIMEOUT = 2.0
_ACTION = "/latest/meta-data/spot/instance-action"
_REBALANCE = "/latest/meta-data/events/recommendations/rebalance"


@frozen(kw_only=True)
class Notice:
    """
    Say that a spot machine is taken back, or may be soon.

    Args:
        certain: Whether it is; otherwise EC2 only recommends to move.
        at: When it is ended, or when the recommendation was made, in seconds since 1970.
    """

    certain: bool
    at: float


def look(base: str | None = None) -> Notice | None:
    """
    Ask the metadata service once; to be called every five seconds, on the machine.

    Args:
        base: Address of the service; None is what `AWS_EC2_METADATA_SERVICE_ENDPOINT` says, else the usual one.

    Returns:
        The notice; None if there is none, or nobody to ask.
    """
    base = (base or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254").rstrip("/")
    lasting = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _ask(f"{base}/latest/api/token", lasting, method="PUT")
    if not token:
        return None
    known = {"X-aws-ec2-metadata-token": token}
    for path, field, certain in ((_ACTION, "time", True), (_REBALANCE, "noticeTime", False)):
        if text := _ask(base + path, known):
            told = datetime.strptime(json.loads(text)[field], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            return Notice(certain=certain, at=told.timestamp())
    return None


def _ask(url: str, headers: dict[str, str], method: str = "GET") -> str:
    """Return what the service answers; nothing if it has nothing to tell."""
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            text: str = answer.read().decode()
            return text
    except (urllib.error.URLError, OSError):
        return ""
