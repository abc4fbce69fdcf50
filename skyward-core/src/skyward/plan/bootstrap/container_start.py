"""The command that a rented container starts with: an SSH server in any image, our keys, and an end of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

from attrs import field, frozen

from skyward.model.fields.variables import Variables, variables

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

# It holds no single quote and no end of line, so that it fits into `sh -c '...'` and into a field of one line.
_KEYS = r"""
export HOME="${HOME:-/root}"; d="$HOME/.skyward"; nl=$(printf "\nx"); nl=${nl%x};
mask=$(umask); umask 077; mkdir -p "$d" /run/sshd;
printf "%s\n" "$SKYWARD_START_LOGIN" >"$d/authorized_keys";
printf -- "-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n-----END OPENSSH PRIVATE KEY-----\n" "@KEY@" >"$d/host_key";
for v in @HIDDEN@; do eval "x=\${$v:-}"; printf "%s=\"%s\"; export %s\n" "$v" "$x" "$v"; unset "$v"; done >"$d/end";
printf "%s\n" "n=0; until { @END@; }; do n=\$((n + 1)); [ \$n -lt @ENDINGS@ ] || exit 1; sleep 20; done" >>"$d/end";
umask "$mask";
"""

# Until a node's own watchdog is there, nothing else would end a container whose client died.
_DEADLINE = r"""
( i=0; while [ "$i" -lt @SECONDS@ ]; do sleep @STEP@; i=$((i + @STEP@)); done;
for w in "${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}"/nodes/*/watchdog.pid;
do [ -e "$w" ] && exit 0; done;
i=0; while [ "$i" -lt @ENDINGS@ ]; do sh "$d/end"; sleep 60; i=$((i + 1)); done ) >/dev/null 2>&1 </dev/null &
"""

# What the image sets for what runs in it, its path first, is what a login gets as well.
_ENVIRONMENT = r"""
s=; for v in $(env | sed -n "s/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p"); do
case $v in SKYWARD_START_* | PWD | OLDPWD | SHLVL | TERM | _) continue;; esac;
eval "x=\${$v:-}"; case $x in "" | *"$nl"* | *[\"\\]*) continue;; esac; s="$s \"$v=$x\""; done;
"""

_SERVER = r"""
have() { command -v "$1" >/dev/null 2>&1; };
server() { command -v sshd || { [ -x /usr/sbin/sshd ] && echo /usr/sbin/sshd; }; };
install() {
if have apt-get; then apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@";
elif have apk; then apk add --no-cache "$@"; elif have dnf; then dnf install -y "$@"; else return 1; fi; };
n=0; set --; server >/dev/null || set -- openssh-server;
have curl || have wget || python3 -m pip --version >/dev/null 2>&1 || set -- "$@" curl ca-certificates;
while [ $# -gt 0 ] && [ "$n" -lt 5 ]; do echo "skyward: this image lacks $*"; install "$@" && break;
n=$((n + 1)); sleep "$n"; done;
sshd=$(server) || { echo "skyward: this image has no OpenSSH server, and none can be installed"; @WAIT@ exit 96; };
printf "%s\n" "HostKey $d/host_key" "AuthorizedKeysFile $d/authorized_keys" "SetEnv$s" "PidFile none" "StrictModes no"
"PermitRootLogin prohibit-password" "PasswordAuthentication no" "UsePAM no" "MaxSessions 100" "MaxStartups 100"
>"$d/sshd_config"; exec "$sshd" -D -e -f "$d/sshd_config"
"""


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
    Write what makes a container of any image one that we reach, and that terminates itself if no client connects to it.

    Its SSH server listens at port 22, authorises one key for root and has another as host key; it is installed where an
    image has none, and its end is the container's.
    A login has the image's variables; `END_COMMAND` runs `end`.

    Args:
        login: The public key that may log in.
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
    parts = (_KEYS, _DEADLINE if deadline else "", _ENVIRONMENT, _SERVER)
    script = " ".join(line for part in parts for line in part.strip().splitlines())
    filled = {
        "@KEY@": "".join(f"${name}" for name in key),
        "@END@": "".join(f"${name}" for name in ending),
        "@HIDDEN@": " ".join(hidden),
        "@SECONDS@": str(deadline),
        "@STEP@": str(min(5, deadline)),
        "@ENDINGS@": str(_ENDINGS),
        # No client can connect to it, so that it terminates itself.
        "@WAIT@": "wait;" if deadline else "",
    }
    for mark, text in filled.items():
        script = script.replace(mark, text)
    return ContainerStart(script=script, env={"SKYWARD_START_LOGIN": login, **key, **ending})


def _pieces(prefix: str, text: str) -> dict[str, str]:
    """Cut a text into variables; some clouds allow 256 characters in each."""
    cuts = range(0, len(text), _LONGEST_VARIABLE)
    return {f"{prefix}{number}": text[start : start + _LONGEST_VARIABLE] for number, start in enumerate(cuts)}
