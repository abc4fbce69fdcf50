"""The machines behind the rows of the test cloud: a real SSH host for each instance that runs."""

from __future__ import annotations

import base64
import shutil
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from attrs import define, field
from moto.ec2.models.instances import Instance, InstanceBackend, InstanceState, StateReason

from tests.clouds.aws.storage import Storage
from tests.clouds.hosting import executable, first_boot, free_port, stand_ins
from tests.clouds.volumes import moved
from tests.hosts import Host

# What is known of a first boot lies where this machine, which may be one of a cloud itself, has it not.
_PER_INSTANCE = """#!/bin/sh
[ "$1" = instance ] && [ "$3 $4" = "sh -c" ] || exit 1
exec sh -c "$(printf %s "$5" | sed 's,/var/lib/cloud,{base}/cloud,g')"
"""

STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}


@define(eq=False)
class Machine:
    """One instance and what is behind it."""

    instance: Any
    region: str
    conditions: dict[str, Any]
    born: float = field(factory=time.monotonic)
    host: Host | None = None
    notice: str | None = None
    why: StateReason | None = None
    over: threading.Event = field(factory=threading.Event)
    lock: threading.Lock = field(factory=threading.Lock)

    def state(self, name: str) -> None:
        """Turn the row's state."""
        self.instance._state = InstanceState(name, STATES.get(name, 255))


class Machines:
    """
    Start and stop hosts as the cloud's rows come and go.

    Args:
        folder: Where the hosts live.
        network: The first three numbers of their addresses, such as `"127.80.0"`.
        url: The cloud's own address.
    """

    def __init__(self, folder: Path, network: str, url: str) -> None:
        self.answering = threading.Lock()
        """Held while a launch is answered; a machine comes up after that."""
        self.hosts = True
        """Whether a machine that runs has a host; without one its row just turns."""
        self.folder = folder
        self.network = network
        self.url = url
        self.port = free_port(f"{network}.1")
        self.rows: dict[str, Machine] = {}
        self.lag = 0.0
        self.skew = 0.0
        self.launch = threading.local()
        self.images: set[str] = set()
        self.storage = Storage(folder / "volumes")
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
                self._say_why(instance)
            return before

        def all_reservations(backend: Any, *args: Any, **kwargs: Any) -> Any:
            return [one for one in every(backend, *args, **kwargs) if not self._hidden(one)]

        InstanceBackend.run_instances = run_instances
        Instance.terminate = terminate
        InstanceBackend.all_reservations = all_reservations

    def keep(self, name: str, image: str) -> None:
        """Copy what is on a machine's disk, for others that boot from it."""
        machine = self.rows[name]
        with machine.lock:
            kept = self.folder / "images" / image
            kept.mkdir(parents=True)
            for part in ("home", "cloud", "host_key", "host_key.pub"):
                if machine.host is not None:
                    # What comes and goes on a running machine may be gone.
                    subprocess.run(["cp", "-a", machine.host.base / part, kept], check=False, capture_output=True)
        self.images.add(image)

    def drop(self, image: str) -> None:
        """Forget an image."""
        self.images.discard(image)
        shutil.rmtree(self.folder / "images" / image, ignore_errors=True)

    def interrupt(self, name: str, seconds: float) -> None:
        """Take a spot machine back, after a notice."""
        machine = self.rows[name]
        machine.notice = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        threading.Thread(target=self._reclaim, args=(machine, seconds), daemon=True).start()

    def shutdown(self, name: str) -> None:
        """Do what a shutdown from within means for the instance."""
        machine = self.rows[name]
        if machine.instance.instance_initiated_shutdown_behavior == "terminate":
            machine.why = _reason("Client.InstanceInitiatedShutdown", "Instance initiated shutdown")
            machine.instance.terminate()
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
        # Those whose machines are gone are used again.
        address = f"{self.network}.{self._count % 250 + 2}"
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
        with self.answering:
            pass
        with machine.lock:
            if machine.over.is_set():
                return
            if conditions.get("dies"):
                machine.why = _reason("Server.InternalError", "Internal error on launch")
            elif self.hosts and not conditions.get("refuse"):
                machine.host = self._host(machine, address)
                if len(_user_data(machine.instance).get("bootcmd", ())) > 2:
                    # Long before its SSH server is there; disks are attached only then, and the boot waits for them.
                    self.storage.open(machine.host)
                    machine.state("running")
                self._let_in(machine.host, _user_data(machine.instance))
                machine.host.start()
                first_boot(machine.host, _user_data(machine.instance).get("runcmd", ()))
            # One that was ended while it booted stays ended.
            if not machine.over.is_set():
                machine.state("running")
        if conditions.get("dies"):
            machine.instance.terminate()

    def _host(self, machine: Machine, address: str) -> Host:
        data = _user_data(machine.instance)
        env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{self.url}/imds/{machine.instance.id}"}
        host = Host(self.folder / machine.instance.id, address, "", env=env, port=self.port)
        if machine.instance.image_id in self.images:
            kept = self.folder / "images" / machine.instance.image_id
            subprocess.run(["cp", "-a", f"{kept}/.", host.base], check=True)
        given = data.get("ssh_keys", {}).get("ed25519_private")
        if given and not machine.conditions.get("key"):
            (host.base / "host_key").write_text(given)
            (host.base / "host_key.pub").write_text(data["ssh_keys"]["ed25519_public"])
        stand_ins(host, self.url, machine.instance.id)
        executable(host.base / "bin" / "cloud-init-per", _PER_INSTANCE.format(base=host.base))
        own = host.base / "cloud" / "instances" / machine.instance.id
        own.mkdir(parents=True)
        (own / "user-data.txt").write_text(yaml.safe_dump(data))
        current = host.base / "cloud" / "instance"
        current.unlink(missing_ok=True)
        current.symlink_to(own)
        return host

    @staticmethod
    def _let_in(host: Host, data: dict[str, Any]) -> None:
        """Do what the first boot does before the SSH server is there: keys come to those that a disk has already."""
        commands = ([*words[:-1], moved(words[-1], host)] for words in data.get("bootcmd", ()))
        first_boot(host, [*commands])
        keys = host.base / "home" / ".ssh" / "authorized_keys"
        keys.parent.mkdir(exist_ok=True)
        with keys.open("a") as file:
            file.writelines(f"{key}\n" for key in data.get("ssh_authorized_keys", ()))
        door = host.base / "authorized_keys"
        door.unlink()
        door.symlink_to(keys)

    def _reclaim(self, machine: Machine, seconds: float) -> None:
        if not machine.over.wait(seconds):
            machine.why = _reason("Server.SpotInstanceTermination", "Spot instance termination")
            machine.instance.terminate()

    def _end(self, instance: Any) -> None:
        machine = self.rows[instance.id]
        machine.over.set()
        machine.state("shutting-down")
        threading.Thread(target=self._stop, args=(machine, "terminated"), daemon=True).start()

    def _say_why(self, instance: Any) -> None:
        """Give the reason of an end that no user asked for."""
        why = self.rows[instance.id].why
        if why is not None:
            instance.state_reason = why

    def _stop(self, machine: Machine, state: str) -> None:
        with machine.lock:
            if machine.host is not None:
                machine.host.stop()
                machine.host.sweep()
                machine.host = None
            machine.state(state)


def _reason(code: str, message: str) -> StateReason:
    """Make the reason of a state as EC2 writes it: the message repeats the code."""
    return StateReason(f"{code}: {message}", code)


def _user_data(instance: Any) -> dict[str, Any]:
    """Read what the machine was given to do at its first boot."""
    if instance.user_data is None:
        return {}
    text = base64.b64decode(instance.user_data.as_bytes()).decode()
    assert text.startswith("#cloud-config\n"), text[:40]
    found: dict[str, Any] = yaml.safe_load(text)
    return found
