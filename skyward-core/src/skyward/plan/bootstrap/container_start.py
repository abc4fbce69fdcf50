"""The command that a rented container starts with: an SSH server in any image, our keys, and an end of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

from attrs import field, frozen

from skyward.model.fields.variables import Variables, variables
from skyward.shell_files import shell_file

if TYPE_CHECKING:
    from skyward.plan.bootstrap.first_boot import HostKey

__all__ = ["END_COMMAND", "ContainerStart", "container_start"]

END_COMMAND = ("sh", "-c", 'exec sh "${HOME:-/root}/.skyward/end"')
"""What ends such a container from within: `end_command` of its provider's facts."""

LEAST_DEADLINE = 300.0
"""Seconds that a container waits at least for a client to make a node of it; it may have to install things first."""

_LONGEST_VARIABLE = 200
# An API that is out of order for minutes must not leave a container to be billed for ever.
_ENDINGS = 30


def _env(value: Mapping[str, str]) -> Variables:
    """Return the variables of a container, checked."""
    return variables(value, "env")


def _names(value: Variables) -> str:
    """Return the names of variables without their text, which may be secret."""
    return "{" + ", ".join(value) + "}"


@frozen(kw_only=True)
class ContainerStart:
    """
    Say how a container starts.

    Args:
        script: For `sh -c`; it holds no single quote and no end of line.
        env: Variables that it needs, of 200 characters at most; the repr shows their names.
    """

    script: str
    env: Variables = field(converter=_env, repr=_names)


def container_start(
    login: str, host: HostKey, *, end: str, hidden: Sequence[str] = (), ttl: float | None = None
) -> ContainerStart:
    """
    Write what makes a container of any image one that we reach, and that ends itself if no client comes for it.

    Its SSH server listens at port 22, lets root in by one key and proves itself by another; it is installed where the
    image has none, and its end is the container's.
    A login has the image's variables; `END_COMMAND` runs `end`.

    Args:
        login: The public key that is let in.
        host: The container's own key.
        end: A line for a shell that ends the container's bill; where it fails, it is run again for ten minutes.
        hidden: Variables of the container that only `end` gets to see, such as its key.
        ttl: Seconds without a client that the pool allows; 0 or None never ends it.

    >>> from skyward.plan.bootstrap.first_boot import HostKey
    >>> start = container_start("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "-"), end="kill 1", ttl=600)
    >>> "'" in start.script, "\\n" in start.script, max(map(len, start.env.values())) <= 200
    (False, False, True)
    """
    key = _pieces("SKYWARD_START_KEY_", "".join(host.private.split("\n")[1:-2]))
    ending = _pieces("SKYWARD_START_END_", end)
    deadline = ceil(max(ttl, LEAST_DEADLINE)) if ttl else 0
    text = shell_file(
        __package__,
        "container_start.sh",
        KEY="".join(f"${name}" for name in key),
        END="".join(f"${name}" for name in ending),
        HIDDEN=" ".join(hidden),
        SECONDS=str(deadline),
        STEP=str(min(5, deadline)),
        ENDINGS=str(_ENDINGS),
        # No client can come to it, so that it ends itself.
        WAIT="wait;" if deadline else "",
    )
    script = " ".join(line.removesuffix(" \\") for line in text.split("\n") if not line.startswith("#"))
    return ContainerStart(script=script, env={"SKYWARD_START_LOGIN": login, **key, **ending})


def _pieces(prefix: str, text: str) -> dict[str, str]:
    """Cut a text into variables; some clouds allow 256 characters in each."""
    cuts = range(0, len(text), _LONGEST_VARIABLE)
    return {f"{prefix}{number}": text[start : start + _LONGEST_VARIABLE] for number, start in enumerate(cuts)}
