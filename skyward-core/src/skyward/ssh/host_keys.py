"""Which host keys are taken, and what is said of those that are not."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyward.errors import ConfigError, HostKeyError
from skyward.ssh.quick_login import sign_at_once

if TYPE_CHECKING:
    from skyward.model.instances.machine import SSHAddress


class HostKeys:
    """
    Judge the host keys of one connection, and remember that of a host seen for the first time.

    Args:
        address: The machine.
    """

    def __init__(self, address: SSHAddress) -> None:
        self._address = address
        self._refusal: HostKeyError | None = None

    def known(self, host: str, addr: str, port: int | None) -> Any:
        """Find the keys of a host, as asyncssh asks for them."""
        import asyncssh

        own = self._address.host_key
        if own is None and self._address.fingerprints:
            # Each key is then checked by its fingerprint, whatever a file says.
            content = ""
        else:
            content = f"* {own}\n" if own is not None else self._content()
        try:
            return asyncssh.match_known_hosts(asyncssh.import_known_hosts(content), host, addr, port)
        except ValueError as error:
            raise ConfigError(f"The file of known hosts, {self._path()}, cannot be read: {error}.") from error

    def client(self) -> Any:
        """Make what asyncssh asks about a key that is not known."""
        import asyncssh

        judge = self._judge

        class Client(asyncssh.SSHClient):
            def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
                sign_at_once(conn)

            def validate_host_public_key(self, host: str, addr: str, port: int, key: Any) -> bool:
                return judge(host, addr, port, key)

        return Client()

    def refusal(self) -> HostKeyError | None:
        """Return why the last key was not taken."""
        return self._refusal

    def _judge(self, host: str, addr: str, port: int, key: Any) -> bool:
        fingerprint = key.get_fingerprint()
        name = f"{host}, port {port}"
        pinned = self._address.fingerprints if self._address.host_key is None else ()
        if pinned:
            accepted = fingerprint in pinned
            self._refusal = None if accepted else _other_fingerprint(name, fingerprint, pinned)
            return accepted
        if self._address.host_key is not None or any(self.known(host, addr, port)[0]):
            given = self._address.host_key is not None
            where = "the key it was given" if given else str(self._path())
            forget = shlex.join(("ssh-keygen", "-R", _spelled(host, port), "-f", str(self._path())))
            self._refusal = HostKeyError(
                f"THE HOST KEY OF {name} HAS CHANGED: it is {fingerprint} and not the one in {where}. "
                "Either the machine was reinstalled, or another machine stands between you and it. Nothing was sent.",
                hint="If you know why it changed, give the new one: SSHAddress(host_key=...)."
                if given
                else f"If you know why it changed, forget the old key: {forget}",
            )
            return False
        if self._address.trust == "known":
            self._refusal = HostKeyError(
                f"The host key of {name}, {fingerprint}, is not in {self._path()}.",
                hint='Add it there, or write sky.SSH(..., trust="first-use") to have it added.',
            )
            return False
        self._remember(host, port, key)
        return True

    def _remember(self, host: str, port: int, key: Any) -> None:
        path = self._path()
        line = f"{_spelled(host, port)} {key.export_public_key().decode().strip()}\n"
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One write of one line: several hosts are dialled side by side.
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # An editor may have left the last line without its end, and ours would be a part of it.
                size = os.fstat(fd).st_size
                broken = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                os.write(fd, f"{chr(10) * broken}{line}".encode())
            finally:
                os.close(fd)
        except OSError as error:
            raise ConfigError(f"The host key of {host} cannot be written to {path}: {error.strerror}.") from error

    def _path(self) -> Path:
        return Path(self._address.known_hosts or "~/.ssh/known_hosts").expanduser()

    def _content(self) -> str:
        try:
            return self._path().read_text()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise ConfigError(f"The file of known hosts, {self._path()}, cannot be read: {error.strerror}.") from error


def _other_fingerprint(name: str, fingerprint: str, pinned: Sequence[str]) -> HostKeyError:
    """Return the error of a host whose key has none of the pinned fingerprints."""
    return HostKeyError(
        f"THE HOST KEY OF {name} IS NOT THE EXPECTED ONE: its fingerprint is {fingerprint} and not "
        f"{' or '.join(pinned)}. Either the machine was set up again, or another machine stands between you and it. "
        "Nothing was sent.",
        hint="If you know why it changed, give the new one: SSHAddress(fingerprints=...).",
    )


def _spelled(host: str, port: int) -> str:
    """
    Name a host as a file of known hosts does.

    >>> _spelled("gpu-box", 22), _spelled("gpu-box", 2222)
    ('gpu-box', '[gpu-box]:2222')
    """
    return host if port == 22 else f"[{host}]:{port}"
