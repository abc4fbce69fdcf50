"""The key and certificate by which the nodes of a pool know each other, one for each pool."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

_FROM = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_UNTIL = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
"""No well-defined end (RFC 5280, 4.1.2.5): it ends with the pool, whatever a node's clock says."""


class PoolCertificate(NamedTuple):
    """A certificate that is its own authority, and its private key, both PEM."""

    certificate: str
    key: str


def make_certificate() -> PoolCertificate:
    """Make a key on the curve P-256 and a certificate of it."""
    # In the function, because only pools that hand data on from node to node need it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "skyward pool")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        # It signs no other certificate.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return PoolCertificate(
        made.public_bytes(pem).decode(),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode(),
    )
