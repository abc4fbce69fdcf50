"""Session Manager in the test cloud: the permission for a session, and the agent's end of its data channel."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field

from tests.clouds.aws.data_channel import (
    CLOSED,
    COMPLETE,
    DATA,
    MOST,
    OUTPUT,
    PATIENCE,
    REQUEST,
    RESPONSE,
    End,
    Message,
)
from tests.clouds.aws.machines import Machine, Machines
from tests.clouds.aws.web_socket import WebSocket, accepted

AGENT_LATE = 0.3
"""Seconds after which the agent of a machine that runs is there; on AWS it may be a minute."""


@define(eq=False)
class Session:
    """One session, and what became of it."""

    id: str
    token: str
    address: str
    port: int
    state: str = "made"
    sent: int = 0
    received: int = 0
    again: int = 0
    unacknowledged: int = 0
    faults: list[str] = field(factory=list)


class Sessions:
    """
    Give sessions, and serve their data channels.

    Args:
        machines: The machines there are.
    """

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._online: dict[str, float] = {}
        self.all: dict[str, Session] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def start(self, params: dict[str, Any]) -> tuple[str, str] | dict[str, str]:
        """Answer `StartSession`: the code and message of a refusal, or the session."""
        target = params["Target"]
        machine = self._machines.rows.get(target)
        if not self._is_online(machine):
            return "TargetNotConnected", f"{target} is not connected."
        if params.get("DocumentName") != "AWS-StartSSHSession":
            return "InvalidDocument", "There is no such document."
        [port] = params["Parameters"]["portNumber"]
        assert machine is not None
        name = f"test-{secrets.token_hex(8)}"
        session = Session(name, secrets.token_hex(32), machine.instance.nics[0].private_ip_address, int(port))
        self.all[name] = session
        url = f"{self.url}/v1/data-channel/{name}?role=publish_subscribe"
        return {"SessionId": name, "TokenValue": session.token, "StreamUrl": url}

    def told(self) -> list[dict[str, Any]]:
        """Tell of all sessions there were."""
        return [
            {
                "id": each.id,
                "state": each.state,
                "sent": each.sent,
                "received": each.received,
                "again": each.again,
                "unacknowledged": each.unacknowledged,
                "faults": each.faults,
            }
            for each in self.all.values()
        ]

    def _is_online(self, machine: Machine | None) -> bool:
        if machine is None or machine.instance.state != "running":
            return False
        since = self._online.setdefault(machine.instance.id, time.monotonic())
        return time.monotonic() - since >= AGENT_LATE

    def _serve(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            threading.Thread(target=self._attend, args=(sock,), daemon=True).start()

    def _attend(self, sock: socket.socket) -> None:
        channel, path = accepted(sock)
        session = self.all[urlsplit(path).path.rpartition("/")[2]]
        try:
            session.state = _held(session, channel)
        except OSError:
            # The client has gone without a word.
            session.state = "closed"
        except (AssertionError, ValueError, KeyError) as error:
            session.faults.append(f"{type(error).__name__}: {error}")
            session.state = "broken"
        channel.close()


def _held(session: Session, channel: WebSocket) -> str:
    """Hold a session from its first message to its last; return how it ended."""
    opening = json.loads(channel.receive() or b"{}")
    assert opening.get("MessageSchemaVersion") == "1.0", opening
    if opening.get("TokenValue") != session.token:
        return "refused"
    agent = End(channel, OUTPUT)
    kind = {"SessionType": "Port", "Properties": {"portNumber": str(session.port)}}
    action = {"ActionType": "SessionType", "ActionParameters": kind}
    agent.send(json.dumps({"AgentVersion": "3.3.0.0", "RequestedClientActions": [action]}).encode(), REQUEST)
    answer = agent.receive()
    assert answer is not None, "no handshake"
    assert answer.payload_kind == RESPONSE, answer
    done = json.loads(answer.payload)
    assert [1] == [each["ActionStatus"] for each in done["ProcessedClientActions"]], done
    agent.send(json.dumps({"HandshakeTimeToComplete": 1000000, "CustomerMessage": ""}).encode(), COMPLETE)
    session.state = "open"
    with socket.create_connection((session.address, session.port), timeout=20) as door:
        door.settimeout(None)
        threading.Thread(target=_outwards, args=(session, agent, door), daemon=True).start()
        threading.Thread(target=_again, args=(session, agent), daemon=True).start()
        while (message := agent.receive()) is not None:
            assert message.payload_kind == DATA, message
            assert len(message.payload) <= MOST, "the plugin sends no more at once"
            session.received += len(message.payload)
            door.sendall(message.payload)
    session.unacknowledged = len(agent.unacknowledged)
    return "closed"


def _again(session: Session, agent: End) -> None:
    with contextlib.suppress(OSError):
        while session.state == "open":
            time.sleep(PATIENCE / 5)
            agent.remind()
            session.again = agent.again


def _outwards(session: Session, agent: End, door: socket.socket) -> None:
    # The other end may have gone.
    with contextlib.suppress(OSError):
        while data := door.recv(MOST):
            session.sent += len(data)
            agent.send(data)
        agent.channel.send(Message(kind=CLOSED, payload=b"{}").written())
