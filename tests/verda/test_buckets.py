"""Where the buckets are of a volume without storage: the object storage that Verda's own command was configured for."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.errors import CredentialsError
from skyward_verda.buckets import ENDPOINT, bucket_storage
from skyward_verda.login import Wish

FILE = """
[default]
verda_client_id = me
verda_s3_access_key = id
verda_s3_secret_key = hidden

[other]
verda_s3_access_key = id2
verda_s3_secret_key = hidden2
verda_s3_endpoint = https://objects.fin-01.verda.storage/
verda_s3_region = eu-north-1
"""


def test_keys_are_those_of_the_profile(tmp_path: Path) -> None:
    """The endpoint as well, if it keeps one; the keys show up in no text."""
    (tmp_path / "credentials").write_text(FILE)
    environment = {"VERDA_HOME": str(tmp_path)}
    found = bucket_storage(Wish(), environment)
    assert (ENDPOINT, "us-east-1", "id", "hidden") == (
        found.endpoint,
        found.region,
        found.access_key,
        found.secret_key,
    )
    other = bucket_storage(Wish(profile="other"), environment)
    assert ("https://objects.fin-01.verda.storage", "eu-north-1", "id2") == (
        other.endpoint,
        other.region,
        other.access_key,
    )
    assert "hidden" not in repr((found, other))


def test_without_keys_the_error_says_how_to_keep_some(tmp_path: Path) -> None:
    """Those of the API do not open the object storage."""
    with pytest.raises(CredentialsError, match=r"profile 'default' of \$VERDA_HOME/credentials. Type: verda object-st"):
        bucket_storage(Wish(), {"VERDA_HOME": str(tmp_path)})
