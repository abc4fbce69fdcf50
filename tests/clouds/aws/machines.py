"""The machines behind the rows of the test cloud: a real SSH host for each instance that runs."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from attrs import define, field
from moto.ec2.models.instances import Instance, InstanceBackend, InstanceState, StateReason

from tests.hosts import Host

STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}

_SHUTDOWN = """#!/bin/sh
echo "{name} $*" >>{base}/asked
exec {python} -c 'import urllib.request as r; r.urlopen("{url}/test-cloud/shutdown?id={id}", data=b"")'
"""

_SUDO = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


@define(eq=False)
class Machine:
    """One instance and what is behind it."""

    instance: Any
    region: str
    conditions: dict[str, Any]
    born: float = field(factory=time.monotonic)
    host: Host | None = None
    notice: str | None = None
    over: threading.Event = field(factory=threading.Event)
    lock: threading.Lock = field(factory=threading.Lock)

    def state(self, name: str) -> None:
        """Turn the row's state."""
        self.instance._state = InstanceState(name, STATES[name])


class Machines:
    """
    Start and stop hosts as the cloud's rows come and go.

    Args:
        folder: Where the hosts live.
        network: The first two numbers of their addresses, such as `"127.80"`.
        url: The cloud's own address.
    """

    def __init__(self, folder: Path, network: str, url: str) -> None:
        self.folder = folder
        self.network = network
        self.url = url
        self.port = _free_port(f"{network}.0.1")
        self.rows: dict[str, Machine] = {}
        self.lag = 0.0
        self.skew = 0.0
        self.launch = threading.local()
        self._count = 0

    def install(self) -> None:
        """Take part in every launch and every end that the cloud makes."""
        run, end = InstanceBackend.run_instances, Instance.terminate
        every = InstanceBackend.all_reservations

        def run_instances(backend: Any, *args: Any, **kwargs: Any) -> Any:
            reservation = run(backend, *args, **kwargs)
            for instance in reservation.instances:
                self._begin(instance, backend.region_name)
            return reservation

        def terminate(instance: Any) -> Any:
            before = instance._state
            if before.name != "terminated":
                end(instance)
                self._end(instance)
            return before

        def all_reservations(backend: Any, *args: Any, **kwargs: Any) -> Any:
            return [one for one in every(backend, *args, **kwargs) if not self._hidden(one)]

        InstanceBackend.run_instances = run_instances
        Instance.terminate = terminate
        InstanceBackend.all_reservations = all_reservations

    def interrupt(self, name: str, seconds: float) -> None:
        """Take a spot machine back, after a notice."""
        machine = self.rows[name]
        machine.notice = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        threading.Thread(target=self._reclaim, args=(machine, seconds), daemon=True).start()

    def shutdown(self, name: str) -> None:
        """Do what a shutdown from within means for the instance."""
        machine = self.rows[name]
        if machine.instance.instance_initiated_shutdown_behavior == "terminate":
            machine.instance.terminate()
            machine.instance.state_reason = StateReason("Shut down from within", "Client.InstanceInitiatedShutdown")
        else:
            machine.over.set()
            threading.Thread(target=self._stop, args=(machine, "stopped"), daemon=True).start()

    def close(self) -> None:
        """End whatever is left."""
        for machine in self.rows.values():
            machine.over.set()
        for machine in self.rows.values():
            self._stop(machine, "terminated")

    def _hidden(self, reservation: Any) -> bool:
        """Say whether a listing does not show a launch yet."""
        rows = [self.rows.get(instance.id) for instance in reservation.instances]
        return any(row is not None and time.monotonic() - row.born < self.lag for row in rows)

    def _begin(self, instance: Any, region: str) -> None:
        self._count += 1
        address = f"{self.network}.{self._count // 250}.{self._count % 250 + 2}"
        nic = instance.nics[0]
        nic.private_ip_address = address
        nic.private_ip_addresses = [{"Primary": True, "PrivateIpAddress": address}]
        if nic.public_ip:
            nic.public_ip = address
        instance.launch_time += timedelta(seconds=self.skew)
        conditions = getattr(self.launch, "conditions", {})
        machine = self.rows[instance.id] = Machine(instance, region, conditions)
        machine.state("pending")
        threading.Thread(target=self._boot, args=(machine, address), daemon=True).start()

    def _boot(self, machine: Machine, address: str) -> None:
        conditions = machine.conditions
        if conditions.get("never"):
            return
        if machine.over.wait(conditions.get("seconds", 0.0)):
            return
        with machine.lock:
            if machine.over.is_set():
                return
            if conditions.get("dies"):
                machine.instance.state_reason = StateReason("Internal error on launch", "Server.InternalError")
            elif not conditions.get("refuse"):
                machine.host = self._host(machine, address)
                machine.host.start()
                _first_boot(machine.host, _user_data(machine.instance).get("runcmd", ()))
            machine.state("running")
        if conditions.get("dies"):
            machine.instance.terminate()

    def _host(self, machine: Machine, address: str) -> Host:
        data = _user_data(machine.instance)
        keys = "".join(f"{key}\n" for key in data.get("ssh_authorized_keys", ()))
        env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{self.url}/imds/{machine.instance.id}"}
        host = Host(self.folder / machine.instance.id, address, keys, env=env, port=self.port)
        given = data.get("ssh_keys", {}).get("ed25519_private")
        if given and not machine.conditions.get("key"):
            (host.base / "host_key").write_text(given)
            (host.base / "host_key.pub").write_text(data["ssh_keys"]["ed25519_public"])
        for name in ("shutdown", "poweroff", "halt"):
            script = _SHUTDOWN.format(
                name=name, base=host.base, python=sys.executable, url=self.url, id=machine.instance.id
            )
            _executable(host.base / "bin" / name, script)
        _executable(host.base / "bin" / "sudo", _SUDO)
        return host

    def _reclaim(self, machine: Machine, seconds: float) -> None:
        if not machine.over.wait(seconds):
            machine.instance.terminate()
            machine.instance.state_reason = StateReason("Spot reclaim", "Server.SpotInstanceTermination")

    def _end(self, instance: Any) -> None:
        machine = self.rows[instance.id]
        machine.over.set()
        machine.state("shutting-down")
        threading.Thread(target=self._stop, args=(machine, "terminated"), daemon=True).start()

    def _stop(self, machine: Machine, state: str) -> None:
        with machine.lock:
            if machine.host is not None:
                machine.host.stop()
                machine.host.sweep()
                machine.host = None
            machine.state(state)


def _user_data(instance: Any) -> dict[str, Any]:
    """Read what the machine was given to do at its first boot."""
    if instance.user_data is None:
        return {}
    text = base64.b64decode(instance.user_data.as_bytes()).decode()
    assert text.startswith("#cloud-config\n"), text[:40]
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def _first_boot(host: Host, commands: Any) -> None:
    """Run commands as the machine's first boot would, with stand-ins for what would reach this machine."""
    env = {"HOME": f"{host.base}/home", "PATH": f"{host.base}/bin:{os.environ['PATH']}"}
    for command in commands:
        words = ["sh", "-c", command] if isinstance(command, str) else command
        with contextlib.suppress(OSError), (host.base / "first_boot.log").open("ab") as log:
            subprocess.Popen(
                words,
                env=env,
                cwd=env["HOME"],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            ).wait(timeout=5)


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _free_port(address: str) -> int:
    with socket.socket() as sock:
        sock.bind((address, 0))
        port: int = sock.getsockname()[1]
        return port
