"""Real SSH hosts on loopback addresses: one OpenSSH server each, with its own keys, home and port."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"

_CONFIG = """
ListenAddress {address}:{port}
HostKey {base}/host_key
AuthorizedKeysFile {base}/authorized_keys {base}/home/.ssh/authorized_keys
PidFile {base}/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
SetEnv HOME={base}/home PATH={base}/bin:{path}{extra_env}
AllowStreamLocalForwarding {forwarding}
Subsystem sftp internal-sftp
"""


# One that is just about to become another program has no environment; on a busy machine that can take a while.
_MOMENTS = 50

_OF_KERNEL = 0x00200000
"""The flag of the kernel's threads in the ninth field of `/proc/PID/stat`, see proc(5)."""


class Host:
    """
    Run one SSH server.

    Args:
        base: Its own directory.
        address: The loopback address it listens at.
        key: The public key that it lets in.
        forwarding: Whether it forwards Unix sockets.
        env: Environment of what runs there.
        port: The port it listens at; None for one that is free.
    """

    def __init__(
        self,
        base: Path,
        address: str,
        key: str,
        *,
        forwarding: bool = True,
        env: dict[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.base = base
        self.address = address
        self.port = port or _free_port(address)
        self._process: subprocess.Popen[bytes] | None = None
        (base / "home").mkdir(parents=True)
        (base / "bin").mkdir()
        # Nothing that a node does to its machine may reach this one.
        for name in ("shutdown", "poweroff", "reboot", "systemctl", "halt"):
            stand_in = base / "bin" / name
            stand_in.write_text(f'#!/bin/sh\necho "{name} $*" >>{base}/asked\n')
            stand_in.chmod(0o755)
        (base / "authorized_keys").write_text(key)
        self.new_host_key()
        (base / "sshd_config").write_text(
            _CONFIG.format(
                address=address,
                port=self.port,
                base=base,
                path=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                extra_env="".join(f" {name}={value}" for name, value in (env or {}).items()),
                forwarding="yes" if forwarding else "no",
            )
        )

    @property
    def cache(self) -> Path:
        """Where Skyward keeps what it has on this host."""
        return self.base / "home" / ".cache" / "skyward"

    def new_host_key(self) -> None:
        """Give the host another identity, as a machine that is set up anew."""
        path = self.base / "host_key"
        for old in (path, path.with_suffix(".pub")):
            old.unlink(missing_ok=True)
        _keygen(path)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._process = subprocess.Popen(
            [SSHD, "-D", "-f", str(self.base / "sshd_config"), "-E", str(self.base / "sshd.log")],
            start_new_session=True,
        )
        deadline = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), timeout=1):
                return
            assert time.monotonic() < deadline, (self.base / "sshd.log").read_text()
            time.sleep(0.01)

    def configure(self, line: str) -> None:
        """Change a setting of the server, and start it anew."""
        path = self.base / "sshd_config"
        # The first line of a setting is the one that counts.
        path.write_text(f"{line}\n{path.read_text()}")
        self.stop()
        self.start()

    def cut(self) -> None:
        """Break every connection there is; new ones are let in."""
        for pid in self.connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server with all its connections."""
        if self._process is None:
            return
        # A server that stands still lets no login in while those that are in are ended.
        # In a container it is not the first process.
        for pid in (self._process.pid, *self.connections()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        deadline = time.monotonic() + 10.0
        while self.connections() and time.monotonic() < deadline:
            self.cut()
            time.sleep(0.01)
        self._process.kill()
        self._process.wait()
        self._process = None

    def entered(self) -> int:
        """Count how often a login was let in."""
        log = self.base / "sshd.log"
        return log.read_text().count("Accepted publickey") if log.exists() else 0

    def processes(self) -> list[int]:
        """List the processes that run with this host's home."""
        return _processes(f"HOME={self.base}/home")[0]

    def sweep(self) -> None:
        """End whatever a test left here, and what that began while it was looked for."""
        deadline, unseen, before = time.monotonic() + 10.0, 0, Counter[int]()
        while unseen < 2 and time.monotonic() < deadline:
            found, nameless = _processes(f"HOME={self.base}/home")
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            before.update(nameless)
            becoming = [pid for pid in nameless if before[pid] < _MOMENTS]
            unseen = 0 if found or becoming else unseen + 1
            time.sleep(0.01)

    def connections(self) -> list[int]:
        """List the servers' processes, one or two for each connection."""
        if self._process is None:
            return []
        waiting, found = [self._process.pid], []
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for child in map(int, children):
                    if b"sshd" in Path(f"/proc/{child}/cmdline").read_bytes()[:40]:
                        found.append(child)
                        waiting.append(child)
        return found


class ContainerHost(Host):
    """
    Run what a container is to run; an SSH server that this starts is reached at the host's address and port.

    Args:
        base: Its own directory.
        address: The loopback address that its port 22 is published at.
        words: The command.
        env: Its environment, besides home and path.
        port: The port that its port 22 is published at; None for one that is free.
    """

    def __init__(
        self, base: Path, address: str, words: Sequence[str], env: Mapping[str, str], *, port: int | None = None
    ) -> None:
        super().__init__(base, address, "", port=port)
        self._words = words
        path = f"{base}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._env = {"PATH": path, **env, "HOME": f"{base}/home"}
        self._server = f"exec {SSHD} -o ListenAddress={address}:{self.port}"
        self._stand_in("sshd", f'{self._server} "$@"')
        for name in ("apt-get", "apk", "dnf"):
            self._stand_in(name, f'echo "{name} $*" >>{base}/asked; exit 100')

    def impersonate(self) -> None:
        """Have another server answer than the one that is started, with a key of its own."""
        self._stand_in("sshd", f'{self._server} -o HostKey={self.base}/host_key "$@"')

    def _stand_in(self, name: str, line: str) -> None:
        path = self.base / "bin" / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def start(self) -> None:
        """Start the first process; a client that wants its SSH server has to wait for it."""
        with (self.base / "container.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._words,
                env=self._env,
                cwd=self.base / "home",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until the first process has ended, which is the end of a container."""
        if self._process is not None:
            self._process.wait()


@contextlib.contextmanager
def hosts(
    count: int, *, forwarding: bool = True, env: dict[str, str] | None = None
) -> Iterator[tuple[list[Host], Path]]:
    """
    Run several hosts, and give them with the path of the private key that they let in.

    Args:
        count: How many.
        forwarding: Whether they forward Unix sockets.
        env: Environment of what runs there.
    """
    Path("/run/sshd").mkdir(exist_ok=True)
    # A short path, because names of Unix sockets have hardly more than a hundred characters.
    base = Path(tempfile.mkdtemp(prefix="ssh", dir="/tmp"))
    key = base / "key"
    _keygen(key)
    made: list[Host] = []
    try:
        for number in range(count):
            made.append(
                Host(
                    base / f"h{number}",
                    f"127.0.0.{number + 2}",
                    key.with_suffix(".pub").read_text(),
                    forwarding=forwarding,
                    env=env,
                )
            )
            made[-1].start()
        yield made, key
    finally:
        for host in made:
            host.stop()
            host.sweep()
        shutil.rmtree(base, ignore_errors=True)


def package_settings() -> dict[str, str]:
    """
    Return variables with which a host finds packages as this machine does, and keeps what it downloads where it does.
    """
    named = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_CERT"))}
    return {"UV_SYSTEM_CERTS": "1", "UV_CACHE_DIR": f"{os.environ['XDG_CACHE_HOME']}/uv", **named}


def _processes(entry: str) -> tuple[list[int], list[int]]:
    """List the processes whose environment has an entry, and those without any, but for threads of the kernel."""
    found, nameless = [], []
    for pid, environ in environments():
        if f"\0{entry}\0".encode() in environ:
            found.append(pid)
        elif not environ:
            with contextlib.suppress(OSError):
                state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if state != "Z" and not int(fields[5]) & _OF_KERNEL:
                    nameless.append(pid)
    return found, nameless


def environments() -> Iterator[tuple[int, bytes]]:
    """
    Yield each process with its environment, whose entries lie between zero bytes; nothing is one that has none.

    Tests look again and again, and a path object for each process would cost more than the reading.
    """
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                environ = file.readall()
                yield int(name), b"\0%b\0" % environ if environ else b""


def _keygen(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _free_port(address: str) -> int:
    with socket.socket() as sock:
        sock.bind((address, 0))
        port: int = sock.getsockname()[1]
        return port
