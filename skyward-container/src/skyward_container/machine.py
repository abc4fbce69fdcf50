"""Containers as `inspect` describes them, and as Skyward does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from skyward.provider import Instance, InstanceState, SSHAddress, Tags, facts

__all__ = ["HOST_KEY", "instance_of", "labels"]

HOST_KEY = "skyward.host-key"
"""The label with the public half of the container's own key."""

RESTARTS_WITHIN = 5.0
"""Seconds that a container which stopped may take to be started again: until then it is on its way, not lost."""

_STARTING = {"created", "configured", "initialized", "starting"}
_STOPPED = {"exited", "stopped"}


def labels(tags: Tags) -> dict[str, str]:
    """
    Write tags as labels. They cannot be changed later, so the expiry is left out.

    Args:
        tags: What is to be written on a container.

    >>> labels(Tags(pool_id="a1", pool_name="train", node=0, expires_at=1.8e9))
    {'skyward.pool': 'a1', 'skyward.pool-name': 'train', 'skyward.node': '0'}
    """
    written = {name.replace(":", "."): text for name, text in tags.to_strings().items()}
    return {name: text for name, text in written.items() if name != "skyward.expires"}


def instance_of(row: Mapping[str, Any], private_key: str | None, now: float) -> Instance | None:
    """
    Describe a container; a fact that cannot be read is not known, with a warning.

    Args:
        row: What `inspect` says of it, Docker's or Podman's.
        private_key: What lets us in; without it there is no address.
        now: The time, in seconds since 1970.

    Returns:
        The machine; None if it is none of ours.
    """
    config: Mapping[str, Any] = row.get("Config") or {}
    written: Mapping[str, str] = config.get("Labels") or {}
    tags = Tags.from_strings({name.replace("skyward.", "skyward:", 1): text for name, text in written.items()})
    if tags is None:
        return None
    container = str(row["Name"]).lstrip("/")
    fact = facts("container", container)
    network = row.get("NetworkSettings") or {}
    port = fact("NetworkSettings.Ports", lambda: _port(network.get("Ports") or {}))
    address = None
    if port and private_key:
        address = SSHAddress(
            host="127.0.0.1", port=port, user="root", private_key=private_key, host_key=written.get(HOST_KEY)
        )
    private = fact("NetworkSettings.Networks", lambda: _private(network.get("Networks") or {}))
    # As for a state that is not known: it is of no use, and it is there.
    state = fact("State", lambda: _state(row["State"], now)) or InstanceState.ENDING
    return Instance(
        id=container,
        node=tags.node or 0,
        provider="container",
        state=state,
        address=address,
        instance_type=config.get("Image"),
        ip="127.0.0.1",
        private_ip=private,
        tags=tags,
        launched_at=fact("Created", lambda: datetime.fromisoformat(row["Created"]).timestamp()),
        reason=fact("State", lambda: _reason(row["State"])) if state is InstanceState.ENDED else None,
    )


def _state(state: Mapping[str, Any], now: float) -> InstanceState:
    if state.get("Running"):
        return InstanceState.RUNNING
    status = str(state.get("Status")).lower()
    if status in _STARTING:
        return InstanceState.PENDING
    stopped = datetime.fromisoformat(state["FinishedAt"]).timestamp() if status in _STOPPED else 0.0
    return InstanceState.PENDING if now - stopped < RESTARTS_WITHIN else InstanceState.ENDED


def _reason(state: Mapping[str, Any]) -> str:
    """Return why a container ended, in the words of `inspect`."""
    if state.get("OOMKilled"):
        return "memory ran out (OOMKilled)"
    return f"{state.get('Status')} with code {state.get('ExitCode')}. {state.get('Error') or ''}".rstrip(". ")


def _private(networks: Mapping[str, Any]) -> str | None:
    """Return the container's own address in one of its networks."""
    return next((found for each in networks.values() if (found := each.get("IPAddress"))), None)


def _port(ports: Mapping[str, Any]) -> int | None:
    """Return where on this machine the container's SSH server is published."""
    published = ports.get("22/tcp") or []
    return int(published[0]["HostPort"]) if published else None
