"""
A process that serves S3: moto's, which is in every environment of the tests.

    python -m tests.storage.server

It prints its address, and ends when its standard input is closed.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


class Quiet(MotoRequestHandler):
    """Handle requests without a line for each."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""


def main() -> None:
    """Serve until no process holds our standard input any more."""
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
