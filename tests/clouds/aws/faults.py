"""Faults on purpose: which requests of a client they meet, and what happens then."""

from __future__ import annotations

import json
import re
import threading
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from attrs import define, field, frozen

EC2, JSON = "text/xml;charset=UTF-8", "application/x-amz-json-1.1"


@frozen(kw_only=True)
class Request:
    """One request of a client, as far as it was understood."""

    service: str
    action: str
    region: str
    key: str
    params: dict[str, Any]
    json: bool

    @property
    def name(self) -> str:
        """Name the permission that it needs."""
        return f"{self.service}:{self.action}"

    @property
    def needs(self) -> set[str]:
        """Name all permissions that it needs: tags want one of their own, as do a fleet's machines."""
        tagged = any(name.startswith("TagSpecification.") for name in self.params)
        launches = self.action == "CreateFleet"
        return {self.name, *(["ec2:CreateTags"] if tagged else []), *(["ec2:RunInstances"] if launches else [])}

    @property
    def dry(self) -> bool:
        """Tell whether it only asks for the permission."""
        return self.params.get("DryRun") == "true"

    def listed(self, name: str) -> list[str]:
        """Return the values of a numbered parameter."""
        return [value for key, value in self.params.items() if key.startswith(f"{name}.") and key.count(".") == 1]

    def filtered(self, name: str) -> list[str]:
        """Return the values of a filter."""
        for key, value in self.params.items():
            if key.startswith("Filter.") and key.endswith(".Name") and value == name:
                front = f"{key.removesuffix('.Name')}.Value."
                return [each for other, each in self.params.items() if other.startswith(front)]
        return []


@define(kw_only=True)
class Fault:
    """
    One fault.

    Args:
        action: The action that it meets; `*` is any.
        effect: `"error"`, `"cut"` (the answer is lost after all was done), `"late"` (it comes after `seconds`), or what
            becomes of a launched machine: `"slow"`, `"never"`, `"refuse"`, `"key"`, `"dies"`.
        where: What else a request must have: type, zone, market, region, dry.
        times: How often; None for always.
    """

    action: str
    effect: str = "error"
    code: str = "InternalError"
    status: int = 400
    message: str = "Refused on purpose."
    headers: dict[str, str] = field(factory=dict)
    seconds: float = 0.0
    where: dict[str, str] = field(factory=dict)
    times: int | None = None


class Faults:
    """Keep the faults that wait, and count them down."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self.garbled: list[str] = []
        """Machines, by their ids, of which answers give no moment of launch that can be read."""
        self._lock = threading.Lock()

    def add(self, description: dict[str, Any]) -> None:
        """Have one more fault wait, or a machine be garbled."""
        with self._lock:
            if name := description.get("garble"):
                self.garbled.append(name)
            else:
                self._waiting.append(Fault(**description))

    def clear(self) -> None:
        """Forget them all."""
        with self._lock:
            self._waiting.clear()
            self.garbled.clear()

    def garble(self, answer: bytes) -> bytes:
        """Write an answer of the same length in which the launch of some machines was at no moment."""
        for name in self.garbled:
            # The tags stand between both, and within each machine's part its own id is the first.
            found = re.search(rf"<instanceId>{name}</instanceId>.*?<launchTime>([^<]*)<".encode(), answer, re.DOTALL)
            if found is not None:
                answer = answer[: found.start(1)] + b"yesterday".ljust(len(found[1])) + answer[found.end(1) :]
        return answer

    def take(self, action: str, facts: dict[str, str]) -> list[Fault]:
        """Return the faults that meet a request, each once."""
        met = []
        with self._lock:
            for fault in list(self._waiting):
                if fault.action not in ("*", action) or any(
                    facts.get(name) != value for name, value in fault.where.items()
                ):
                    continue
                # What is not done meets nothing but the question whether it is allowed.
                if facts.get("dry") and "dry" not in fault.where and fault.code != "UnauthorizedOperation":
                    continue
                # One refusal is one answer.
                if fault.effect == "error" and any(each.effect == "error" for each in met):
                    continue
                met.append(fault)
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times < 1:
                        self._waiting.remove(fault)
        return met


def read(environ: dict[str, Any], body: bytes) -> Request | None:
    """Understand a request; None if it is of none of the services that are spoken here."""
    credential = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition(",")[0].split("/")
    key, region, service = (credential[0], credential[2], credential[3]) if len(credential) > 3 else ("", "", "")
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return Request(
            service=service,
            action=target.partition(".")[2],
            region=region,
            key=key,
            params=json.loads(body or b"{}"),
            json=True,
        )
    params = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if "Action" not in params:
        return None
    return Request(service=service, action=params["Action"], region=region, key=key, params=params, json=False)


def refusal(request: Request, code: str, message: str) -> tuple[str, bytes]:
    """Write an error as the service writes it: content type and body."""
    if request.json:
        return JSON, json.dumps({"__type": code, "message": message}).encode()
    inner = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if request.service == "ec2":
        text = f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>r-1</RequestID></Response>"
    else:
        text = f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error><RequestId>r-1</RequestId></ErrorResponse>"
    return EC2, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
