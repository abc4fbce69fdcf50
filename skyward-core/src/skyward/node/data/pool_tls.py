"""
The encrypted connections of a pool's nodes among themselves: TLS 1.3, both ends with the pool's own certificate.

The client makes key and certificate for each pool and sends them over its link; they are no one else's, so an end that
proves that it has the key is of the pool.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl


class Contexts(NamedTuple):
    """What the end that listens uses, and what the end that connects does."""

    listening: ssl.SSLContext
    connecting: ssl.SSLContext


def contexts(certificate: str, key: str, directory: str) -> Contexts:
    """
    Make both ends' settings.

    Args:
        certificate: The pool's certificate, PEM.
        key: Its private key, PEM.
        directory: A directory of this user's alone, where both lie for a moment: OpenSSL reads them from a file only.

    Raises:
        ImportError: If this Python was built without OpenSSL.
        OSError: If they are none, or cannot be written.
    """
    # In the function, because it costs some MiB that agents of most pools never need.
    import ssl
    import tempfile

    fd, path = tempfile.mkstemp(prefix="pool-", suffix=".pem", dir=directory)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(certificate + key)
        return Contexts(
            *(
                _context(ssl.SSLContext(protocol), certificate, path)
                for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
            )
        )
    finally:
        os.unlink(path)


def _context(context: ssl.SSLContext, certificate: str, path: str) -> ssl.SSLContext:
    import ssl

    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The certificate says which pool it is, and not which node: all of them have the same.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificate)
    context.load_cert_chain(path)
    # Each connection is used once.
    context.options |= ssl.OP_NO_TICKET
    return context
