"""How Verda says no: reference/verda.md §6 and §7."""

from __future__ import annotations

from typing import Any

from tests.clouds.emulator import Answer


def _said(code: str, message: str, status: int) -> Answer:
    return Answer({"code": code, "message": message}, status)


def unauthorized() -> Answer:
    """Refuse a token."""
    return _said("unauthorized_request", "Access token is missing or invalid", 401)


def invalid(message: str) -> Answer:
    """Refuse a request."""
    return _said("invalid_request", message, 400)


def not_found(message: str) -> Answer:
    """Know nothing of it."""
    return _said("not_found", message, 404)


def no_capacity(kind: str, place: str) -> Answer:
    """Have none left: a 503 that is no outage."""
    gpus = kind[0] if kind[0].isdigit() else "0"
    return _said(
        "service_unavailable", f"Not enough resources to deploy a {gpus} GPU instance type {kind} in {place}", 503
    )


def provisioning() -> Answer:
    """Refuse to end what is not made yet."""
    return _said("forbidden_action", "Can't discontinue a provisioning instance", 403)


def gone() -> Answer:
    """Refuse to end what is gone, with the same code."""
    return _said("forbidden_action", "Can't discontinue a discontinued instance", 403)


def unknown_instance() -> Answer:
    """Refuse an id that there never was."""
    return invalid("Invalid instance id")


def overlong(tags: list[dict[str, Any]]) -> bool:
    """Say whether there are too many tags, or one is too long: reference/verda.md §4."""
    return len(tags) > 10 or any(len(tag["key"]) > 63 or len(tag.get("value", "")) > 127 for tag in tags)
