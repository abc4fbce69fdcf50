"""Each pool has a certificate of its own, which holds whatever a node's clock says and signs nothing."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509

from skyward.engine.nodes.pool_certificate import make_certificate


def test_each_is_another() -> None:
    """Neither key nor certificate is used twice."""
    one, other = make_certificate(), make_certificate()
    assert one.key != other.key
    assert one.certificate != other.certificate


@pytest.mark.parametrize("year", [2001, 2026, 2500])
def test_it_holds_at_any_time(year: int) -> None:
    """A node whose clock is wrong takes part."""
    made = x509.load_pem_x509_certificate(make_certificate().certificate.encode())
    now = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
    assert made.not_valid_before_utc < now < made.not_valid_after_utc


def test_it_signs_no_other() -> None:
    """A node cannot let others into the pool with it, but by handing on the key itself."""
    made = x509.load_pem_x509_certificate(make_certificate().certificate.encode())
    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
