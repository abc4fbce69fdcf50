"""What stands behind the rows of a test cloud: a real SSH host for each instance that runs, or none."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.hosts import ContainerHost, Host

_SHUTDOWN = """#!/bin/sh
echo "{name} $*" >>{base}/asked
exec {python} -c 'import urllib.request as r; r.urlopen("{url}/test-cloud/shutdown?id={id}", data=b"")'
"""

_SUDO = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""

_NVIDIA_SMI = """#!/bin/sh
case "$*" in
    *--query-gpu=name,memory.total*nounits*) cat <<'END'
{listing}
END
    ;;
    *) exit 6 ;;
esac
"""

_BECOMES = 1.0
"""Seconds in which a process that was forked becomes another program, on a busy machine."""

Command = str | Sequence[str]


@define(kw_only=True)
class Boot:
    """
    Say how a machine comes up.

    Args:
        keys: The public keys that it lets in.
        private: Its own key in the format of OpenSSH, and
        public: the line of it; None for a new one.
        env: Environment of what runs there.
        entry: What a container runs as its first process, which has to bring an SSH server and ends with the machine;
            keys and commands are not for it.
        commands: What it does once its SSH server is there.
        gpus: Its GPUs, each as `nvidia-smi` lists it: name, and memory in MiB.
        conditions: What goes wrong: `never`, `refuse`, `key`, `dies`, and the `seconds` that it takes.
        arrange: What else is done to its host before that starts.
    """

    keys: Sequence[str] = ()
    private: str | None = None
    public: str | None = None
    env: dict[str, str] = field(factory=dict)
    entry: Sequence[str] = ()
    commands: Sequence[Command] = ()
    gpus: Sequence[str] = ()
    conditions: dict[str, Any] = field(factory=dict)
    arrange: Callable[[Host], None] = lambda host: None


@define(eq=False)
class Machine:
    """One instance's machine; `state` is `"pending"`, `"running"`, `"dead"`, `"stopped"`, `"ending"` or `"ended"`."""

    name: str
    address: str
    boot: Boot
    state: str = "pending"
    born: float = field(factory=time.monotonic)
    host: Host | None = None
    over: threading.Event = field(factory=threading.Event)
    lock: threading.Lock = field(factory=threading.Lock)


class Machines:
    """
    Start and stop hosts as a cloud's rows come and go.

    Args:
        folder: Where the hosts live.
        network: The first three numbers of their addresses, such as `"127.80.32"`.
        url: The cloud's own address.
        changed: Told of every machine whose state has changed.
        answering: Held while a request is answered; a machine without a host comes up after the answer to its launch.
    """

    def __init__(
        self,
        folder: Path,
        network: str,
        url: str,
        changed: Callable[[Machine], None] = lambda machine: None,
        answering: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.folder = folder
        self.network = network
        self.url = url
        self.port = free_port(f"{network}.1")
        self.all: dict[str, Machine] = {}
        self.hosts = True
        """Whether a machine that runs has a host; without one its row just turns."""
        self._changed = changed
        self._answering = answering or contextlib.nullcontext()
        self._count = 0
        self._lock = threading.Lock()

    def begin(self, name: str, boot: Boot) -> Machine:
        """Have a machine boot."""
        with self._lock:
            self._count += 1
            # Those whose machines are gone are used again.
            address = f"{self.network}.{self._count % 250 + 2}"
            machine = self.all[name] = Machine(name, address, boot)
        threading.Thread(target=self._boot, args=(machine,), daemon=True).start()
        return machine

    def stop(self, name: str) -> None:
        """Have a machine switch itself off: it is still there, and can be ended."""
        self._leave(self.all[name], "stopped")

    def end(self, name: str) -> None:
        """Have a machine be gone for good."""
        machine = self.all[name]
        if machine.state not in ("ending", "ended"):
            self._turn(machine, "ending")
            self._leave(machine, "ended")

    def close(self) -> None:
        """End whatever is left."""
        for machine in self.all.values():
            machine.over.set()
        for machine in self.all.values():
            self._down(machine, "ended")

    def _leave(self, machine: Machine, state: str) -> None:
        machine.over.set()
        threading.Thread(target=self._go, args=(machine, state), daemon=True).start()

    def _go(self, machine: Machine, state: str) -> None:
        host = machine.host
        self._down(machine, state)
        if host is not None:
            # What sshd had just forked for a login bears nothing of the host until it has become the user's shell.
            time.sleep(_BECOMES)
            if host.processes():
                host.sweep()

    def _turn(self, machine: Machine, state: str) -> None:
        machine.state = state
        self._changed(machine)

    def _boot(self, machine: Machine) -> None:
        conditions = machine.boot.conditions
        if conditions.get("never") or machine.over.wait(conditions.get("seconds", 0.0)):
            return
        with self._answering:
            pass
        with machine.lock:
            if machine.over.is_set():
                return
            if conditions.get("dies"):
                machine.over.set()
                self._turn(machine, "dead")
                return
            if self.hosts and not conditions.get("refuse"):
                machine.host = self._host(machine)
                machine.host.start()
                first_boot(machine.host, machine.boot.commands, machine.boot.env)
            # One that is ended meanwhile does not come back.
            if not machine.over.is_set():
                self._turn(machine, "running")
        host = machine.host
        if isinstance(host, ContainerHost):
            host.wait()
            if not machine.over.is_set():
                self._leave(machine, "stopped")

    def _host(self, machine: Machine) -> Host:
        boot = machine.boot
        host = self._container(machine) if boot.entry else self._plain(machine)
        stand_ins(host, self.url, machine.name)
        if boot.gpus:
            listing = "\n".join(boot.gpus)
            executable(host.base / "bin" / "nvidia-smi", _NVIDIA_SMI.format(listing=listing))
        boot.arrange(host)
        return host

    def _container(self, machine: Machine) -> Host:
        boot = machine.boot
        host = ContainerHost(self.folder / machine.name, machine.address, boot.entry, boot.env, port=self.port)
        if boot.conditions.get("key"):
            host.impersonate()
        return host

    def _plain(self, machine: Machine) -> Host:
        boot = machine.boot
        keys = "".join(f"{key}\n" for key in boot.keys)
        host = Host(self.folder / machine.name, machine.address, keys, env=boot.env, port=self.port)
        if boot.private and boot.public and not boot.conditions.get("key"):
            (host.base / "host_key").write_text(boot.private)
            (host.base / "host_key.pub").write_text(boot.public)
        return host

    def _down(self, machine: Machine, state: str) -> None:
        with machine.lock:
            if machine.host is not None:
                machine.host.stop()
                machine.host.sweep()
                machine.host = None
            if machine.state != "ended":
                self._turn(machine, state)


def stand_ins(host: Host, url: str, name: str) -> None:
    """Give a host commands that tell the cloud at `url` what is asked of the machine `name`, and end nothing here."""
    for command in ("shutdown", "poweroff", "halt"):
        text = _SHUTDOWN.format(name=command, base=host.base, python=sys.executable, url=url, id=name)
        executable(host.base / "bin" / command, text)
    executable(host.base / "bin" / "sudo", _SUDO)


def first_boot(host: Host, commands: Sequence[Command], env: dict[str, str] | None = None) -> None:
    """Run commands as the machine's first boot would, with stand-ins for what would reach this machine."""
    path = f"{host.base}/bin:{os.environ['PATH']}"
    given = {**(env or {}), "HOME": f"{host.base}/home", "PATH": path}
    for command in commands:
        words = ["sh", "-c", command] if isinstance(command, str) else command
        with (
            contextlib.suppress(OSError, subprocess.TimeoutExpired),
            (host.base / "first_boot.log").open("ab") as log,
        ):
            subprocess.Popen(
                words,
                env=given,
                cwd=given["HOME"],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            ).wait(timeout=5)


def executable(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def free_port(address: str) -> int:
    """Find a port that nothing listens at."""
    with socket.socket() as sock:
        sock.bind((address, 0))
        port: int = sock.getsockname()[1]
        return port
