"""
A cloud's API over real HTTP, in a process of its own, with real SSH hosts for its instances and faults on purpose.

Where a test asks for no hosts, rows come up, die and end as they do otherwise, in milliseconds, and no SSH server runs.

A test cloud is a module with a class of its own:

    class MyCloud(Emulator):
        @route("GET", "/v1/machines/{id}")
        def machine(self, request: Request) -> Answer:
            return Answer(self.rows[request.path_values["id"]])      # reference/mycloud.md §5

    if __name__ == "__main__":
        serve(MyCloud, *sys.argv[1:])

It imports nothing of ours, prints its address, and ends when its standard input is closed; `tests.clouds.cloud.Cloud`
speaks to it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from attrs import define, evolve, field, frozen
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.clouds.hosting import Machine, Machines

LAUNCH_EFFECTS = {"slow", "never", "refuse", "key", "dies"}


@frozen(kw_only=True)
class Request:
    """One request of a client."""

    method: str
    path: str
    query: dict[str, str]
    """The last value of each key; `pairs` has all."""
    headers: dict[str, str]
    """By names in lower case."""
    raw: bytes
    pairs: list[tuple[str, str]] = field(factory=list)
    path_values: dict[str, str] = field(factory=dict)
    conditions: dict[str, Any] = field(factory=dict)
    """What becomes of a machine that it launches, see `Boot`."""

    @property
    def json(self) -> Any:
        """Read the body."""
        return json.loads(self.raw) if self.raw else None


@frozen
class Answer:
    """One answer: a body that is sent as JSON, or as it is if it is text; None for none at all."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(factory=dict)


@define(kw_only=True)
class Fault:
    """
    One fault.

    Args:
        on: The requests that it meets, such as `"POST /v2/droplets"` or `"DELETE *"`.
        effect: `"answer"` (with `status`, `body` and `headers`, and nothing is done), `"cut"` (the answer is lost after
            all was done), `"late"` (it comes after `seconds`), `"edit"` (the answer that comes has the fields of `body`
            in it, those that are null are taken out), or what becomes of a launched machine: `"slow"` (by `seconds`),
            `"never"`, `"refuse"`, `"key"`, `"dies"`.
        of: What an object of the answer must say to be edited; nothing for all of them.
        where: What else `Emulator.facts` must say of a request.
        times: How often; None for always.
    """

    on: str
    effect: str = "answer"
    status: int = 500
    body: Any = None
    headers: dict[str, str] = field(factory=dict)
    seconds: float = 0.0
    of: dict[str, Any] = field(factory=dict)
    where: dict[str, Any] = field(factory=dict)
    times: int | None = None


Handler = Callable[[Any, Request], Answer]


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Have a method answer the requests to a path, whose `{names}` are handed over in `request.path_values`."""

    def mark(handler: Handler) -> Handler:
        pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)))
        routes = getattr(handler, "routes", [])
        handler.routes = [*routes, (method, pattern)]  # type: ignore[attr-defined]
        return handler

    return mark


class Emulator:
    """
    Answer as a cloud does.

    Args:
        folder: Where the hosts live.
        network: The first three numbers of their addresses.
        url: Where this cloud is served.
    """

    missing: ClassVar[Answer] = Answer({"message": "not found"}, 404)
    """What is said of paths that there are not."""

    def __init__(self, folder: Path, network: str, url: str) -> None:
        self.url = url
        self.lock = threading.RLock()
        self.machines = Machines(folder, network, url, self.changed, self.lock)
        self.faults: list[Fault] = []
        self.calls: list[dict[str, Any]] = []
        self.met = 0
        self.lag = 0.0
        """Seconds for which listings do not show what was just launched."""
        self._routes = [
            (method, pattern, getattr(self, name))
            for name in dir(type(self))
            for method, pattern in getattr(getattr(type(self), name), "routes", ())
        ]

    # What a cloud says of itself.

    def authorize(self, request: Request) -> Answer | None:
        """Refuse a request whose credentials are wrong."""
        raise NotImplementedError

    def facts(self, request: Request) -> dict[str, Any]:
        """Say of a request what faults may ask for."""
        return {}

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers that every answer has."""
        return {}

    def instances(self) -> list[dict[str, Any]]:
        """
        Return every instance there ever was, for tests to read.

        Each has an `id`, whether it is `alive` (something of it is billed), its `state` in the cloud's word, `name`,
        `tags`, `spot`, and what else a test may want to know.
        """
        raise NotImplementedError

    def terminate(self, name: str) -> None:
        """End an instance behind everybody's back."""
        self.machines.end(name)

    def interrupt(self, name: str) -> None:
        """Take a spot machine back, as this cloud does."""
        self.terminate(name)

    def shutdown(self, name: str) -> None:
        """Do what a shutdown from within means for the instance; it stays billed unless the cloud says otherwise."""
        self.machines.stop(name)

    def changed(self, machine: Machine) -> None:
        """Write down that a machine has another state."""

    def reset(self) -> None:
        """Forget what a test asked for, beside faults."""

    def control(self, what: str, given: Any) -> Any:
        """Do what only the tests of this cloud ask for."""
        raise ValueError(what)

    # What all of them do alike.

    def shown(self, name: str) -> bool:
        """Say whether listings show an instance yet."""
        return time.monotonic() - self.machines.all[name].born >= self.lag

    def __call__(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        headers = {name[5:].replace("_", "-").lower(): text for name, text in environ.items() if name[:5] == "HTTP_"}
        pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        request = Request(
            method=environ["REQUEST_METHOD"],
            path=environ["PATH_INFO"],
            query=dict(pairs),
            pairs=pairs,
            headers={**headers, "content-type": environ.get("CONTENT_TYPE", "")},
            raw=environ["wsgi.input"].read(length) if length else b"",
        )
        if request.path.startswith("/test-cloud/"):
            answer = Answer(self._control(request.path.removeprefix("/test-cloud/"), request))
            return _send(respond, Answer(answer.body if answer.body is not None else {}))
        self.calls.append(
            {
                "name": f"{request.method} {request.path}",
                "query": request.query,
                "body": request.raw.decode("utf-8", "replace"),
                "at": time.monotonic(),
            }
        )
        met = self._meets(request)
        for fault in met:
            if fault.effect == "late":
                time.sleep(fault.seconds)
            if fault.effect == "answer":
                return _send(respond, Answer(fault.body, fault.status, {**self.headers(request), **fault.headers}))
        answer = self._answer(request, met)
        for fault in met:
            if fault.effect == "edit":
                answer = Answer(_edited(answer.body, fault), answer.status, answer.headers)
        if any(fault.effect == "cut" for fault in met):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError
        return _send(respond, Answer(answer.body, answer.status, {**self.headers(request), **answer.headers}))

    def _answer(self, request: Request, met: list[Fault]) -> Answer:
        refused = self.authorize(request)
        if refused is not None:
            return refused
        conditions: dict[str, Any] = {each.effect: True for each in met if each.effect in LAUNCH_EFFECTS}
        conditions["seconds"] = sum(each.seconds for each in met if each.effect == "slow")
        for method, pattern, handler in self._routes:
            found = pattern.fullmatch(request.path)
            if found and method == request.method:
                with self.lock:
                    answered: Answer = handler(evolve(request, path_values=found.groupdict(), conditions=conditions))
                return answered
        return self.missing

    def _meets(self, request: Request) -> list[Fault]:
        called, facts, met = f"{request.method} {request.path}", None, []
        with self.lock:
            for fault in list(self.faults):
                if not fnmatchcase(called, fault.on):
                    continue
                facts = self.facts(request) if facts is None else facts
                if any(facts.get(name) != value for name, value in fault.where.items()):
                    continue
                # One refusal is one answer.
                if fault.effect == "answer" and any(each.effect == "answer" for each in met):
                    continue
                met.append(fault)
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times < 1:
                        self.faults.remove(fault)
            self.met += len(met)
        return met

    def _control(self, what: str, request: Request) -> Any:
        given = request.json
        if what == "fault":
            with self.lock:
                self.faults.append(Fault(**given))
        elif what == "calm":
            with self.lock:
                self.faults.clear()
                self.calls.clear()
                self.met, self.lag = 0, 0.0
                self.reset()
        elif what == "hosts":
            self.machines.hosts = given
        elif what == "lag":
            self.lag = given
        elif what == "calls":
            return self.calls
        elif what == "met":
            return self.met
        elif what == "instances":
            with self.lock:
                return self.instances()
        elif what == "terminate":
            self.terminate(request.query["id"])
        elif what == "shutdown":
            self.shutdown(request.query["id"])
        elif what == "interrupt":
            self.interrupt(given["id"])
        elif what == "port":
            return self.machines.port
        else:
            return self.control(what, given)
        return None


def _edited(body: Any, fault: Fault) -> Any:
    """Change fields of every object of an answer that has them and is meant, at any depth."""
    if isinstance(body, list):
        return [_edited(each, fault) for each in body]
    if not isinstance(body, dict):
        return body
    kept = {name: _edited(value, fault) for name, value in body.items()}
    if any(str(kept.get(name)) != str(value) for name, value in fault.of.items()):
        return kept
    for name, value in fault.body.items():
        if name in kept and value is None:
            del kept[name]
        elif name in kept:
            kept[name] = value
    return kept


def _send(respond: Callable[..., Any], answer: Answer) -> Iterable[bytes]:
    kind, body = "application/json", b""
    if isinstance(answer.body, str):
        kind, body = "text/html" if answer.body.lstrip().startswith("<") else "text/plain", answer.body.encode()
    elif answer.body is not None:
        body = json.dumps(answer.body).encode()
    given = {"Content-Type": kind, **answer.headers, "Content-Length": str(len(body))}
    respond(f"{answer.status} {'OK' if answer.status < 300 else 'Refused'}", list(given.items()))
    return [body]


class Quiet(WSGIRequestHandler):
    """Handle requests without a line for each."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet about what works."""
        if type == "error":
            print(message % args, file=sys.stderr, flush=True)


def serve(kind: Callable[[Path, str, str], Emulator], folder: str, network: str) -> None:
    """Serve until no process holds our standard input any more."""
    clouds: list[Emulator] = []

    def door(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        return clouds[0](environ, respond)

    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=Quiet)
    url = f"http://127.0.0.1:{server.server_port}"
    clouds.append(kind(Path(folder), network, url))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(url, flush=True)
    sys.stdin.read()
    clouds[0].machines.close()
    os._exit(0)
