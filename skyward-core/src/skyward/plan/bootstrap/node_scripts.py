"""Small scripts about one node on a machine: whether its agent lives, and how it ends for good."""

from __future__ import annotations

import shlex

_ALIVE = r"""
alive() {
    kill -0 "$1" 2>/dev/null || return 1
    # In a container what has ended may stay uncollected.
    case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in Z* | X*) return 1 ;; esac
}
"""

_ASK = r"""
node=@NODE@
cd "$node" 2>/dev/null || exit 3
pid=$(cat agent.pid 2>/dev/null)
# After a reboot another process may have the number.
ours() {
    [ ! -d /proc/self ] || tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | grep -qxF -e "SKYWARD_NODE=${node##*/}"
}
alive "$pid" && ours "$pid" && exit 0
tail -n 10 agent.log
exit 4
"""

_STOP = r"""
name=@NAME@
node="${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}/nodes/$name"
pause() { sleep 0.05 2>/dev/null || sleep 1; }
holds() { tr '\0' '\n' <"$1" 2>/dev/null | grep -qxF -e "$2"; }
# Files in /proc that hold a text. The grep of busybox looks no further than the first NUL; asking each takes longer.
those() {
    if printf 'a\0b' | grep -qF b; then
        LC_ALL=C grep -lF -e "$2" /proc/[0-9]*/"$1" 2>/dev/null
    else
        ls -d /proc/[0-9]*/"$1" 2>/dev/null
    fi
}
pid=$(cat "$node/agent.pid" 2>/dev/null)
tries=0
while [ -n "$pid" ] && alive "$pid" && [ "$tries" -lt @TRIES@ ]; do
    tries=$((tries + 1))
    pause
done
if [ ! -d /proc/self ] && [ -n "$pid" ]; then kill -9 "-$pid" "$pid" 2>/dev/null; fi
round=0 unseen=0
# One that is just about to become another program has no environment for a moment, so it is looked for twice.
while [ "$round" -lt 40 ] && [ "$unseen" -lt 2 ]; do
    [ "$round" = 0 ] || pause
    round=$((round + 1)) unseen=$((unseen + 1))
    for file in $(those environ "SKYWARD_NODE=$name"); do
        # A mark goes to the end of its variable, or node 1 would take node 10 with it.
        if holds "$file" "SKYWARD_NODE=$name"; then
            process=${file#/proc/}
            kill -9 "${process%/environ}" 2>/dev/null && unseen=0
        fi
    done
done
"""

_REMOVE = r"""
# The agent has taken the directory along, so the watchdog is looked for by its command.
for file in $(those cmdline "$node/watchdog.sh"); do
    process=${file#/proc/}
    process=${process%/cmdline}
    if [ "$process" != $$ ] && holds "$file" "$node/watchdog.sh"; then kill -9 "-$process" "$process" 2>/dev/null; fi
done
rm -rf "$node" "$node@CALL@"
rmdir "${node%/*}" 2>/dev/null
exit 0
"""


CALL = ".in"
"""What follows the name of a node's directory in that of the socket at which its client waits for its agent."""


def call_path(node: str) -> str:
    """
    Name the socket at which a node's client waits for its agent.

    It is beside the node's directory and not in it, because it is there first.

    Args:
        node: Absolute path of that directory.

    >>> call_path("/c/nodes/a-0")
    '/c/nodes/a-0.in'
    """
    return node + CALL


def ask(node: str) -> str:
    """
    Render the check whether a node's agent lives.

    It exits with 0 if so, with 4 and the agent's last words if not, and with 3 if the node's directory is gone.

    Args:
        node: Absolute path of that directory.

    >>> "node=/n" in ask("/n")
    True
    """
    return _ALIVE + _ASK.replace("@NODE@", shlex.quote(node))


def stop(name: str, patience: float) -> str:
    """
    Render what ends everything that a node started, but for the watchdog, which ends the machine.

    Args:
        name: The node's directory on the machine, and the mark of its processes.
        patience: Seconds that its agent has to leave by itself.

    >>> "watchdog" in stop("pool-0", 2.0)
    False
    """
    return _ALIVE + _STOP.replace("@NAME@", shlex.quote(name)).replace("@TRIES@", str(max(0, int(patience * 20))))


def leave(name: str, patience: float) -> str:
    """
    Render what ends a node and everything it started, and removes its directory.

    Args:
        name: The node's directory on the machine, and the mark of its processes.
        patience: Seconds that its agent has to leave by itself.

    >>> "tries\\" -lt 40 ]" in leave("pool-0", 2.0)
    True
    """
    return stop(name, patience) + _REMOVE.replace("@CALL@", CALL)
