"""Each preset has the endpoint, the region and the checksum of its provider."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, CredentialsError
from skyward_storage import Storage

PAIR = {"access_key": "id", "secret_key": "hidden"}


@pytest.mark.parametrize(
    ("preset", "settings", "endpoint", "region", "path_style"),
    [
        ("S3", {"region": "us-east-1"}, "https://s3.us-east-1.amazonaws.com", "us-east-1", False),
        ("S3", {"region": "cn-north-1"}, "https://s3.cn-north-1.amazonaws.com.cn", "cn-north-1", False),
        ("R2", {"account_id": "0abc", **PAIR}, "https://0abc.r2.cloudflarestorage.com", "auto", True),
        ("GCS", PAIR, "https://storage.googleapis.com", "auto", True),
        ("Wasabi", {"region": "eu-west-1", **PAIR}, "https://s3.eu-west-1.wasabisys.com", "eu-west-1", True),
        (
            "Backblaze",
            {"region": "us-west-004", "key_id": "id", "app_key": "hidden"},
            "https://s3.us-west-004.backblazeb2.com",
            "us-west-004",
            True,
        ),
        ("Hyperstack", {"api_key": "hidden"}, "https://ca1.obj.nexgencloud.io", "CANADA-1", True),
    ],
)
def test_a_preset_is_a_storage(
    preset: str, settings: dict[str, Any], endpoint: str, region: str, path_style: bool
) -> None:
    """Its repr shows no key."""
    made = getattr(sky.storage, preset)(**settings)
    assert isinstance(made, Storage)
    assert (endpoint, region, path_style) == (made.endpoint, made.region, made.path_style)
    assert ("CRC32" if preset == "S3" else "MD5") == made.checksum
    assert "hidden" not in repr(made)


@pytest.mark.parametrize(
    ("preset", "settings", "said"),
    [
        ("S3", {"region": "us east"}, "region must be letters"),
        ("S3", {"region": "evil.example/"}, "region must be letters"),
        ("R2", {"account_id": "a", "access_key": None, "secret_key": "hidden"}, "access_key must not be None"),
        ("Backblaze", {"region": "r", "key_id": "", "app_key": "hidden"}, "key_id must not be empty"),
        ("Hyperstack", {"api_key": "hidden", "region": "MARS-1"}, 'region must be "CANADA-1"'),
        ("Hyperstack", {"api_key": ""}, "api_key must not be empty"),
    ],
)
def test_a_setting_that_cannot_be(preset: str, settings: dict[str, Any], said: str) -> None:
    """Where a variable is not set, keys of AWS are not sent to others instead."""
    with pytest.raises(ConfigError, match=said):
        getattr(sky.storage, preset)(**settings)


class Hyperstack(BaseHTTPRequestHandler):
    """Make and delete access keys as Hyperstack's API documents it."""

    server: Any

    def do_POST(self) -> None:
        """Make one."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["api_key"] != "right-key":
            return self.send(401, {"status": False, "message": "Unauthorized"})
        self.server.made.append((self.path, asked["region"]))
        number = len(self.server.made)
        return self.send(
            201, {"id": number, "access_key": f"id-{number}", "secret_key": "made-secret", "region": asked["region"]}
        )

    def do_DELETE(self) -> None:
        """Delete one."""
        self.server.deleted.append(self.path)
        self.send(200, {"status": True, "message": "deleted"})

    def send(self, status: int, answer: object) -> None:
        """Answer."""
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def hyperstack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a server that speaks as Hyperstack's API."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hyperstack)
    server.made, server.deleted = [], []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("HYPERSTACK_API_URL", f"http://127.0.0.1:{server.server_port}/v1")
    yield server
    server.shutdown()
    server.server_close()


def test_hyperstack_makes_keys_and_deletes_them(hyperstack: Any) -> None:
    """Once, for the time of the block."""
    with sky.storage.Hyperstack(api_key="right-key") as storage:
        assert ("id-1", "made-secret") == (storage.credentials().access_key, storage.credentials().secret_key)
        assert [] == hyperstack.deleted
    assert [("/v1/object-storage/access-keys", "CANADA-1")] == hyperstack.made
    assert ["/v1/object-storage/access-keys/1"] == hyperstack.deleted


def test_hyperstack_refuses_a_wrong_key(hyperstack: Any) -> None:
    """And it is shown nowhere."""
    with (
        sky.storage.Hyperstack(api_key=lambda: "wrong-key") as storage,
        pytest.raises(CredentialsError, match="Hyperstack refused") as caught,
    ):
        storage.credentials()
    assert "wrong-key" not in str(caught.value)
