"""The process per node that holds the plugins' `around_app` contexts, in the user's environment."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import sys

from skyward.link.frames import Kind, encode, encode_json
from skyward.node.agent.entry import TASK_FD, die_with_parent, read_start


def main() -> None:
    """Enter the contexts, report what they set in the environment, and hold them until the agent closes the socket."""
    die_with_parent()
    sock = socket.socket(fileno=TASK_FD)
    config, plugins_pickle = read_start(sock)
    os.chdir(config["directory"])
    sys.path.insert(0, config["directory"])
    before = dict(os.environ)
    with contextlib.ExitStack() as stack:
        try:
            from skyward.model.instances.instance import InstanceInfo
            from skyward.plugin import entered

            info = InstanceInfo.from_dict(config["facts"])
            stack.enter_context(entered(tuple(pickle.loads(plugins_pickle)), "around_app", info))
        except BaseException as error:
            from skyward.link.failure import dump_failure

            sock.sendall(encode(Kind.FAILED, dump_failure(error, data=True)))
            sys.stderr.flush()
            os._exit(78)
        changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
        sock.sendall(encode_json(Kind.READY, {"environment": changed}))
        while sock.recv(4096):
            pass


if __name__ == "__main__":
    main()
