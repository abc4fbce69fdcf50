"""Small scripts about one node on a machine: whether its agent lives, and how it ends for good."""

from __future__ import annotations

import shlex

from skyward.shell_files import shell_file

CALL = ".in"
"""What follows the name of a node's directory in that of the socket at which its client waits for its agent."""

SILENT = 20.0
"""Seconds of silence after which a client that is still connected counts as dead, where another one may come."""


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


def relay(runtime: str, socket: str) -> str:
    """
    Render the command that joins its standard input and output with a Unix socket, where none is forwarded.

    Args:
        runtime: Where our side of the node is.
        socket: The socket.

    >>> relay("/c/runtime/1f", "/n/agent.sock")
    "exec sh -c 'PYTHONPATH=/c/runtime/1f python3 -P -m skyward.node.agent.relay /n/agent.sock'"
    """
    command = f"PYTHONPATH={shlex.quote(runtime)} python3 -P -m skyward.node.agent.relay {shlex.quote(socket)}"
    return f"exec sh -c {shlex.quote(command)}"


def ask(node: str) -> str:
    """
    Render the check whether a node's agent lives.

    It exits with 0 if so, with 4 and the agent's last words if not, and with 3 if the node's directory is gone.

    Args:
        node: Absolute path of that directory.

    >>> "node=/n" in ask("/n")
    True
    """
    return f"{_processes()}\n{shell_file(__package__, 'ask_agent.sh', NODE=shlex.quote(node))}"


def stop(name: str, patience: float) -> str:
    """
    Render what ends everything that a node started, but for the watchdog, which ends the machine.

    Args:
        name: The node's directory on the machine, and the mark of its processes.
        patience: Seconds that its agent has to leave by itself.

    >>> "watchdog" in stop("pool-0", 2.0)
    False
    """
    tries = max(0, int(patience * 20))
    return f"{_processes()}\n{shell_file(__package__, 'stop_node.sh', NAME=shlex.quote(name), TRIES=str(tries))}"


def leave(name: str, patience: float) -> str:
    """
    Render what ends a node and everything it started, and removes its directory.

    Args:
        name: The node's directory on the machine, and the mark of its processes.
        patience: Seconds that its agent has to leave by itself.

    >>> "tries=40" in leave("pool-0", 2.0)
    True
    """
    return f"{stop(name, patience)}\n{shell_file(__package__, 'remove_node.sh', CALL=CALL)}"


def linger(name: str, seconds: float) -> str:
    """
    Render what ends everything that a node started, and leaves its machine waiting for the next pool.

    Its watchdog ends the machine after so many seconds, unless a pool claims the node.
    It exits with 0 if so, and with another code where nothing would end the machine.

    Args:
        name: The node's directory on the machine, and the mark of its processes.
        seconds: How long it waits.

    >>> "echo 600 " in linger("pool-0", 600.0)
    True
    """
    waiting = shell_file(__package__, "linger_node.sh", CALL=CALL, SECONDS=str(max(1, int(seconds))))
    return f"{stop(name, 0.0)}\n{waiting}"


def claim(name: str, seconds: float) -> str:
    """
    Render what claims a node that lingers, for one pool alone.

    It exits with 0 if so, with 3 if the node does not linger there any more, as another pool has made one of its own,
    and with 4 if another pool, or the machine's watchdog, was faster.

    Args:
        name: The node's directory on the machine.
        seconds: How long the pool has to make a node of it, after which the machine ends.

    >>> "/nodes/\\"pool-0" in claim("pool-0", 600.0)
    True
    """
    claiming = shell_file(__package__, "claim_node.sh", SECONDS=str(max(1, int(seconds))), SILENT=str(int(SILENT)))
    return f"{shell_file(__package__, 'lingered_node.sh', NAME=shlex.quote(name))}\n{claiming}"


def detach(name: str, seconds: float) -> str:
    """
    Render what leaves a node to the next client, with all that runs there.

    Its watchdog ends it after so many seconds, unless a client claims it.
    It exits with 0 if so, and with another code where nothing would end it.

    Args:
        name: The node's directory on the machine.
        seconds: How long it waits.

    >>> "echo 600 " in detach("pool-0", 600.0)
    True
    """
    leaving = shell_file(__package__, "detach_node.sh", SECONDS=str(max(1, int(seconds))))
    return f"{_processes()}\n{shell_file(__package__, 'lingered_node.sh', NAME=shlex.quote(name))}\n{leaving}"


def resume(name: str) -> str:
    """
    Render what ends the wait of a node that was left, once the client that claimed it has a link to its agent.

    Args:
        name: The node's directory on the machine.

    >>> 'rm -f "$node/linger"' in resume("pool-0")
    True
    """
    resuming = shell_file(__package__, "resume_node.sh")
    return f"{shell_file(__package__, 'lingered_node.sh', NAME=shlex.quote(name))}\n{resuming}"


def succeed(name: str) -> str:
    """
    Render what removes a node that lingered, with its watchdog, once the next node's own is there.

    Args:
        name: The node's directory on the machine.

    >>> "watchdog" in succeed("pool-0")
    True
    """
    removal = shell_file(__package__, "remove_node.sh", CALL=CALL)
    return f"{_processes()}\n{shell_file(__package__, 'lingered_node.sh', NAME=shlex.quote(name))}\n{removal}"


def _processes() -> str:
    """Write the functions that find and end the processes of a node."""
    return shell_file(__package__, "node_processes.sh")
