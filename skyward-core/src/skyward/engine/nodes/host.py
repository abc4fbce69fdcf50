"""What the engine asks of a machine, wherever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import frozen

from skyward.link.channel import Link
from skyward.link.frames import Frame
from skyward.link.joining import Stream

if TYPE_CHECKING:
    from skyward.engine.instances.recipe import Recipe

OnFrame = Callable[[Frame, tuple[int, ...]], None]
OnClosed = Callable[[Exception | None], None]


@frozen(kw_only=True)
class Prepared:
    """
    Say what workers are started with.

    Args:
        python: The interpreter of the image's environment.
        env: Variables that they need to find our side.
        ssh_port: Port at which the machine's SSH server was reached; None where it is the address's, or there is none.
    """

    python: str
    env: Mapping[str, str]
    ssh_port: int | None = None


class Host(Protocol):
    """A machine on its way to being a node."""

    async def prepare(self) -> Prepared:
        """
        Make what the image asks for.

        Raises:
            ProvisionError: If that cannot be done.
        """

    async def open(self, on_frame: OnFrame, on_closed: OnClosed) -> Link:
        """
        Connect to the agent.

        Args:
            on_frame: Called with each frame and its descriptors, which it takes over.
            on_closed: Called once, when the link is over for good.

        Raises:
            SkywardError: If there is none.
        """

    async def dial_port(self, port: int) -> Stream:
        """
        Connect to a TCP port of the machine's own 127.0.0.1.

        Args:
            port: The port.

        Raises:
            ConnectionError: If nothing listens there.
            SkywardError: If the machine cannot be reached, or refuses to forward.
        """

    async def dial_socket(self, path: str) -> Stream:
        """
        Connect to a Unix socket of the machine.

        Args:
            path: The socket.

        Raises:
            ConnectionError: If nothing listens there.
            SkywardError: If the machine cannot be reached.
        """

    async def flush(self) -> None:
        """
        Flush all that was written for the node's environment to the machine's disk.

        Raises:
            SkywardError: If the machine does not answer.
        """

    async def answers(self) -> bool:
        """Return whether the machine answers, whatever its agent does."""

    async def unmount(self, folders: Sequence[str]) -> str:
        """
        Flush the disks at folders, and unmount them where the machine may, after everything of the node has ended.

        Args:
            folders: Where the disks are.

        Returns:
            What failed; empty if nothing did.
        """

    def last_words(self) -> str:
        """Return the end of what the agent wrote, for messages."""

    def leaving(self, patience: float) -> None:
        """
        Record that the agent was asked to leave, so that `end` need not begin from nothing.

        Args:
            patience: Seconds that it has for that.
        """

    async def end(self, patience: float) -> None:
        """
        End the agent and all that it started, and leave nothing but the cache.

        A watchdog that can end the machine stays until the machine is gone.

        Args:
            patience: Seconds that the agent has to leave by itself.
        """

    async def end_machine(self) -> bool:
        """Order the machine to terminate itself, and return whether it was: not one that cannot, or is out of reach."""

    async def close(self) -> None:
        """Close the connection to the machine."""


@runtime_checkable
class LingeringHost(Host, Protocol):
    """A host whose machine may wait for the next pool, because it ends by itself."""

    async def linger(self, seconds: float) -> str:
        """
        Leave the machine waiting, after `end`.

        Args:
            seconds: How long it waits until it ends by itself.

        Returns:
            Its host key, as in a file of known hosts.

        Raises:
            SkywardError: If it cannot wait.
        """


@runtime_checkable
class LeavableHost(Host, Protocol):
    """A host whose node may go on without its client."""

    session: str

    @property
    def host_key(self) -> str:
        """Return its machine's host key, as in a file of known hosts; empty while there is no connection to it."""

    async def detach(self, seconds: float) -> str:
        """
        Leave the node, which ends in so many seconds, unless another client claims it.

        Args:
            seconds: How long it waits.

        Returns:
            Its machine's host key, as in a file of known hosts.

        Raises:
            SkywardError: If nothing would end it, or it does not answer.
        """

    async def resume(self) -> None:
        """
        Stop the end of a node that was left: this client has claimed it, and has a link to its agent.

        Raises:
            SkywardError: If the machine does not answer.
        """


@runtime_checkable
class HostAddress(Protocol):
    """An address that makes its own host, for a machine that is neither this one nor behind an SSH server."""

    def make_host(self, mark: str, recipe: Recipe) -> Host:
        """
        Return the host at this address.

        Args:
            mark: Names the node like no other.
            recipe: What becomes of the machine.
        """
