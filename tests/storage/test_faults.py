"""What goes wrong between a program and an object store ends in an error that says what, why and what to do next."""

from __future__ import annotations

import http.server
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skyward.errors import (
    AccessDeniedError,
    ConfigError,
    CredentialsError,
    NoSuchBucketError,
    StorageError,
    StorageUnavailableError,
)
from skyward_storage import Keys, Storage
from tests.storage.proxy import Asked, Fault, Proxy
from tests.storage.stores import ACCESS_KEY, MIB, SECRET_KEY, Server, checking, free_port, storage_at

PART = 5 * MIB

Make = Callable[..., Path]
Behind = Callable[..., Storage]

OPERATIONS: dict[str, Callable[[Storage, str, Path], object]] = {
    "upload": lambda store, bucket, path: store.upload(bucket, path),
    "download": lambda store, bucket, path: store.download(bucket, "source.bin", path.parent / "back"),
    "ls": lambda store, bucket, path: store.ls(bucket),
    "exists": lambda store, bucket, path: store.exists(bucket, "source.bin"),
    "rm": lambda store, bucket, path: store.rm(bucket, "source.bin"),
}


@pytest.fixture(params=["moto", *(pytest.param(name, marks=pytest.mark.slow) for name in checking(__name__))])
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    """Return each kind of server in turn; the one that checks what it receives takes seconds to start."""
    return servers(request.param)


def anything(asked: Asked) -> bool:
    """Find every request."""
    return True


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_bucket_that_is_not_there(store: Storage, file: Make, operation: str) -> None:
    """Each operation says so, with the bucket."""
    with pytest.raises(
        (NoSuchBucketError, StorageError), match=r"s3://no-such-bucket-here/.*[Cc]heck|List what"
    ) as caught:
        OPERATIONS[operation](store, "no-such-bucket-here", file(10))
    assert "no-such-bucket-here" == caught.value.bucket


@pytest.mark.parametrize("operation", ["upload", "ls", "exists", "rm"])
def test_a_missing_bucket_has_a_class(store: Storage, file: Make, operation: str) -> None:
    """An answer to HEAD alone, as for a download, does not tell it from a missing object."""
    with pytest.raises(NoSuchBucketError):
        OPERATIONS[operation](store, "no-such-bucket-here", file(10))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_missing_permission_is_named(
    behind: Behind, proxy: Proxy, bucket: str, store: Storage, file: Make, operation: str
) -> None:
    """The class is one of credentials, too."""
    source = file(10)
    store.upload(bucket, source)
    proxy.add(Fault(meets=anything, times=9, refuse=(403, "AccessDenied")))
    with pytest.raises(AccessDeniedError, match=r"refused \w+ of s3://.*permission s3:\w+") as caught:
        OPERATIONS[operation](behind(), bucket, source)
    assert isinstance(caught.value, CredentialsError)


@pytest.mark.slow
def test_a_wrong_endpoint_is_named(file: Make) -> None:
    """Nothing listens there."""
    url = f"http://127.0.0.1:{free_port()}"
    with (
        storage_at(url, timeout=1) as store,
        pytest.raises(StorageUnavailableError, match=rf"{url} gave no answer to PutObject .* 4 times: .*Check the end"),
    ):
        store.upload("bucket", file(10))


class Website(http.server.BaseHTTPRequestHandler):
    """Answer as a website does."""

    def do_GET(self) -> None:
        """Send a page."""
        page = b"<html><body>Welcome</body></html>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def website() -> Iterator[str]:
    """Return the address of a website."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Website)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_endpoint_that_is_no_object_store(website: str) -> None:
    """It is not asked again and again."""
    with storage_at(website) as store, pytest.raises(StorageError, match="is not what S3 answers"):
        store.ls("bucket")


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["upload", "download", "ls"])
def test_a_server_that_never_answers(
    behind: Behind, proxy: Proxy, bucket: str, store: Storage, file: Make, operation: str
) -> None:
    """Each wait has an end, and so has their number."""
    source = file(10)
    store.upload(bucket, source)
    proxy.add(Fault(meets=anything, times=9, stall=30))
    with pytest.raises(StorageUnavailableError, match=r"gave no answer to .* 4 times"):
        OPERATIONS[operation](behind(timeout=0.3), bucket, source)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "fault",
    [
        {"refuse": (503, "SlowDown")},
        {"refuse": (500, "InternalError")},
        {"lose_answer": True},
        {"cut_after": 3},
    ],
    ids=["busy", "broken", "lost", "cut"],
)
def test_a_failure_that_passes_is_not_seen(
    behind: Behind, proxy: Proxy, bucket: str, store: Storage, file: Make, operation: str, fault: dict[str, object]
) -> None:
    """Each request may be sent again."""
    source = file(1000)
    store.upload(bucket, source)
    proxy.add(Fault(meets=anything, **fault))  # type: ignore[arg-type]  # its own fields
    OPERATIONS[operation](behind(), bucket, source)


def test_a_bucket_in_another_region_says_where(behind: Behind, proxy: Proxy, bucket: str, file: Make) -> None:
    """Or where to look for that."""
    proxy.add(Fault(meets=lambda asked: asked.method == "PUT", times=9, refuse=(301, "PermanentRedirect")))
    with pytest.raises(StorageError, match="The bucket is elsewhere: give"):
        behind().upload(bucket, file(10))


class Rotating:
    """Give a key, and count how often it is asked for."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self) -> str:
        """Return the key."""
        self.given += 1
        return SECRET_KEY


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId"])
def test_keys_that_expired_are_asked_for_again(
    behind: Behind, proxy: Proxy, bucket: str, file: Make, code: str
) -> None:
    """Once, and kept for what follows."""
    secret = Rotating()
    store = behind(secret_key=secret)
    source = file(10)
    store.upload(bucket, source)
    store.ls(bucket)
    assert 1 == secret.given
    proxy.add(Fault(meets=anything, refuse=(403, code)))
    store.upload(bucket, source)
    store.ls(bucket)
    assert 2 == secret.given


def test_keys_that_expired_in_the_middle_are_asked_for_once(
    behind: Behind, proxy: Proxy, bucket: str, file: Make
) -> None:
    """All parts of a file share the new ones; a part that is sent again may meet the next refusal, but no third one."""
    secret = Rotating()
    proxy.add(Fault(meets=lambda asked: asked.is_part, times=2, refuse=(403, "ExpiredToken")))
    behind(secret_key=secret).upload(bucket, file(3 * PART), key="k")
    assert secret.given in {2, 3}


def test_an_answer_to_head_has_no_code(behind: Behind, proxy: Proxy, bucket: str) -> None:
    """So that keys which can be renewed are, once more."""
    secret = Rotating()
    proxy.add(Fault(meets=lambda asked: asked.method == "HEAD", refuse=(403, "ExpiredToken")))
    assert not behind(secret_key=secret).exists(bucket, "k")
    assert 2 == secret.given


def test_keys_that_stay_bad_are_not_asked_for_without_end(behind: Behind, proxy: Proxy, bucket: str) -> None:
    """Twice is enough."""
    secret = Rotating()
    proxy.add(Fault(meets=anything, times=99, refuse=(403, "ExpiredToken")))
    with pytest.raises(AccessDeniedError, match="Log in again"):
        behind(secret_key=secret).ls(bucket)
    assert 3 == secret.given


def test_keys_that_are_about_to_end_are_renewed_before(behind: Behind, bucket: str) -> None:
    """What gives them says until when they are good."""
    given: list[Keys] = []

    def keys() -> Keys:
        given.append(Keys(access_key=ACCESS_KEY, secret_key=SECRET_KEY, expires_at=0.0 if not given else None))
        return given[-1]

    store = behind(keys=keys)
    store.ls(bucket)
    store.ls(bucket)
    assert 2 == len(given)


def test_plain_keys_are_not_tried_again(behind: Behind, proxy: Proxy, bucket: str) -> None:
    """They would be the same."""
    proxy.add(Fault(meets=anything, times=99, refuse=(403, "InvalidAccessKeyId")))
    with pytest.raises(AccessDeniedError, match="Check access_key"):
        behind().ls(bucket)
    assert 1 == proxy.count(anything)


def test_no_key_is_shown(behind: Behind, proxy: Proxy, bucket: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not in an error, its cause, its traceback or the log, also where a server repeats it."""
    proxy.add(Fault(meets=anything, times=2, refuse=(403, f"InvalidAccessKeyId {SECRET_KEY} {ACCESS_KEY}")))
    with caplog.at_level(logging.DEBUG, "skyward"), pytest.raises(AccessDeniedError) as caught:
        behind().ls(bucket)
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value.__dict__) + caplog.text
    assert "***" in shown
    assert SECRET_KEY not in shown
    assert ACCESS_KEY not in shown


def test_without_keys_the_places_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where AWS's own tools look."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CredentialsError, match=r"no keys for https://s3\.example\.org\. Looked at: AWS_ACCESS_KEY_ID"):
        Storage("https://s3.example.org").ls("bucket")


def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and nothing is sent."""
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    with pytest.raises(CredentialsError, match="nowhere"):
        Storage("https://s3.example.org").ls("bucket")


@pytest.mark.parametrize("where", ["environment", "file"])
def test_keys_are_found_where_aws_keeps_them(
    server: object, bucket: str, store: Storage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    """Variables, and the shared file."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    if where == "environment":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    else:
        (tmp_path / "credentials").write_text(
            f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        )
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    found = Storage(store.endpoint, path_style=True)
    assert [] == found.ls(bucket)
    assert (ACCESS_KEY, SECRET_KEY) == (found.credentials().access_key, found.credentials().secret_key)


def test_a_wrong_argument_is_refused_before_anything_is_sent(
    behind: Behind, proxy: Proxy, file: Make, tmp_path: Path
) -> None:
    """Whichever operation."""
    store, source = behind(), file(10)
    for call in (
        lambda: store.upload("b", source),
        lambda: store.upload("bucket", tmp_path / "none"),
        lambda: store.upload("bucket", source, key=""),
        lambda: store.upload("bucket", source, key="a/../b"),
        lambda: store.download("bucket", "", tmp_path),
        lambda: store.download("bucket", "prefix/", source),
        lambda: store.ls("s3://bucket"),
        lambda: store.ls("bucket", prefix=None),  # type: ignore[arg-type]  # what is refused
        lambda: store.exists("bucket", ""),
        lambda: store.rm("bucket", "prefix/"),
        lambda: store.rm("bucket", "/", recursive=True),
    ):
        with pytest.raises(ConfigError, match=r"must|is a prefix|is not there"):
            call()
    assert [] == proxy.asked
