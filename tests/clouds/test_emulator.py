"""The base of the test clouds: routes, machines that are real hosts, and faults that meet requests."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clouds.cloud import Cloud, running
from tests.clouds.emulator import Answer, Emulator, Request, route, serve
from tests.clouds.hosting import Boot
from tests.hosts import SSHD
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.skipif(not Path(SSHD).exists(), reason="no sshd")]


class Small(Emulator):
    """A cloud that rents machines to everybody with the right token."""

    def authorize(self, request: Request) -> Answer | None:
        """Let one token in."""
        return None if request.headers.get("authorization") == "Bearer t" else Answer({"error": "who?"}, 401)

    def facts(self, request: Request) -> dict[str, Any]:
        """Tell the size."""
        return {"size": (request.json or {}).get("size")}

    def instances(self) -> list[dict[str, Any]]:
        """List the machines."""
        return [
            {"id": name, "state": each.state, "alive": each.state != "ended", "address": each.address}
            for name, each in self.machines.all.items()
        ]

    @route("POST", "/machines")
    def launch(self, request: Request) -> Answer:
        """Rent one."""
        name = f"m{len(self.machines.all)}"
        self.machines.begin(name, Boot(commands=["echo $WHO >who"], env={"WHO": "me"}, conditions=request.conditions))
        return Answer({"id": name, "size": request.json["size"]}, 201)

    @route("DELETE", "/machines/{id}")
    def end(self, request: Request) -> Answer:
        """End one."""
        self.machines.end(request.path_values["id"])
        return Answer(None, 204)


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    """Run it."""
    with running(Cloud, __name__, 250) as found:
        yield found
        found.calm()


def ask(cloud: Cloud, method: str, path: str, body: Any = None, token: str = "t") -> tuple[int, Any]:
    """Send a request, and return status and answer."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{cloud.url}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
        error.close()
    return status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()


def state(cloud: Cloud, name: str) -> str:
    """Tell a machine's state."""
    [found] = [row["state"] for row in cloud.instances() if row["id"] == name]
    return str(found)


def test_a_machine_is_a_host_until_it_is_ended(cloud: Cloud) -> None:
    """It boots, does what it was told, answers at its address, and is gone."""
    cloud.calm()
    status, made = ask(cloud, "POST", "/machines", {"size": "s"})
    assert (201, "s") == (status, made["size"])
    until(lambda: state(cloud, made["id"]) == "running")
    [row] = [row for row in cloud.alive() if row["id"] == made["id"]]
    with socket.create_connection((row["address"], cloud.port), timeout=5) as connection:
        assert connection.recv(4) == b"SSH-"
    assert "me\n" == Path(cloud.folder, made["id"], "home", "who").read_text()
    assert (204, "") == ask(cloud, "DELETE", f"/machines/{made['id']}")
    until(lambda: state(cloud, made["id"]) == "ended")
    assert ["POST /machines"] == [call["name"] for call in cloud.calls("POST")]


def test_a_machine_can_switch_itself_off_and_is_billed_still(cloud: Cloud) -> None:
    """The command on the host tells the cloud, and reaches nothing here."""
    cloud.calm()
    _, made = ask(cloud, "POST", "/machines", {"size": "s"})
    until(lambda: state(cloud, made["id"]) == "running")
    subprocess.run([f"{cloud.folder}/{made['id']}/bin/shutdown", "-h", "now"], check=False, timeout=10)
    until(lambda: state(cloud, made["id"]) == "stopped")
    assert made["id"] in [row["id"] for row in cloud.alive()]
    cloud.terminate(made["id"])
    until(lambda: state(cloud, made["id"]) == "ended")


def test_faults_meet_the_requests_they_name(cloud: Cloud) -> None:
    """By path and by what is asked, so many times; text is sent as it is."""
    cloud.calm()
    cloud.fault("POST /mach*", status=503, body="<html>busy</html>", times=1, where={"size": "big"})
    assert 201 == ask(cloud, "POST", "/machines", {"size": "s"})[0]
    assert (503, "<html>busy</html>") == ask(cloud, "POST", "/machines", {"size": "big"})
    cloud.fault("POST *", "edit", body={"size": None, "id": 7})
    assert (201, {"id": 7}) == ask(cloud, "POST", "/machines", {"size": "big"})
    assert 2 == cloud.met()
    for row in cloud.alive():
        cloud.terminate(row["id"])
    until(lambda: not cloud.alive())


def test_an_answer_that_is_cut_off_has_done_its_work(cloud: Cloud) -> None:
    """The machine is there, and no client heard of it."""
    cloud.calm()
    before = len(cloud.instances())
    cloud.fault("POST *", "cut", times=1)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(cloud, "POST", "/machines", {"size": "s"})
    assert before + 1 == len(cloud.instances())
    for row in cloud.alive():
        cloud.terminate(row["id"])
    until(lambda: not cloud.alive())


def test_wrong_credentials_and_wrong_paths_are_refused(cloud: Cloud) -> None:
    """Each in the cloud's own way."""
    assert 401 == ask(cloud, "POST", "/machines", {"size": "s"}, token="x")[0]
    assert 404 == ask(cloud, "GET", "/nothing")[0]


if __name__ == "__main__":
    serve(Small, *sys.argv[1:])


def test_without_hosts_rows_turn_and_nothing_listens(cloud: Cloud) -> None:
    """A machine runs a moment after its launch was answered, dies or stays pending as the test says, and ends."""
    cloud.hosts(there=False)
    cloud.fault("POST /machines", "dies", where={"size": "weak"})
    cloud.fault("POST /machines", "never", where={"size": "late"})
    made = {size: ask(cloud, "POST", "/machines", {"size": size})[1]["id"] for size in ("big", "weak", "late")}

    def states() -> list[str]:
        rows = {row["id"]: row for row in cloud.instances()}
        return [rows[name]["state"] for name in made.values()]

    until(lambda: states() == ["running", "dead", "pending"], 5)
    [address] = [row["address"] for row in cloud.instances() if row["id"] == made["big"]]
    with pytest.raises(ConnectionRefusedError, match="refused"):
        socket.create_connection((address, cloud.port), timeout=5)
    for name in made.values():
        assert 204 == ask(cloud, "DELETE", f"/machines/{name}")[0]
    until(lambda: states() == ["ended"] * 3, 5)
    cloud.hosts(there=True)
    cloud.calm()
