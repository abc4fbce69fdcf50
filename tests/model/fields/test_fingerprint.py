"""Fingerprints of host keys are held in the one spelling of OpenSSH."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.model.instances.machine import SSHAddress

BARE = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.mark.parametrize("given", [BARE, f"{BARE}=", f"SHA256:{BARE}", f" SHA256:{BARE}=\n"])
def test_each_spelling_of_a_fingerprint_is_the_same(given: str) -> None:
    """Clouds leave out the prefix, or add padding."""
    assert (f"SHA256:{BARE}",) == SSHAddress(host="h", fingerprints=[given]).fingerprints


@pytest.mark.parametrize("given", ["none", "16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48", f"MD5:{BARE}", BARE[1:]])
def test_what_is_no_sha256_fingerprint_is_refused(given: str) -> None:
    """The field is named, and how to get one."""
    with pytest.raises(ConfigError, match=r"fingerprints must be"):
        SSHAddress(host="h", fingerprints=[given])
