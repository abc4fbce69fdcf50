"""Folders go to an object store and come back; no key leads out of the folder that it is written to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward_storage import Storage
from tests.storage.stores import CHECKING, MIB, Server, checking, storage_at

Make = Callable[..., Path]


@pytest.fixture(params=["moto", *(pytest.param(name, marks=pytest.mark.slow) for name in checking(__name__))])
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    """Return each kind of server in turn; the one that checks what it receives takes seconds to start."""
    return servers(request.param)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their paths in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(file: Make, tmp_path: Path) -> Path:
    """Make a folder with small files and a large one."""
    for at, name in enumerate(("a.txt", "b/c.txt", "b/d/e with space+&?.txt", "ünïcödé.txt")):
        file(at * 100, f"data/{name}", at)
    file(6 * MIB, "data/b/large.bin")
    return tmp_path / "data"


def test_a_folder_comes_back_as_it_was(store: Storage, bucket: str, folder: Path, tmp_path: Path) -> None:
    """Under its own name, or what is given."""
    steps: list[tuple[int, int, str]] = []
    store.upload(bucket, folder, progress=lambda *step: steps.append(step))
    assert sorted(f"data/{name}" for name in contents(folder)) == store.ls(bucket)
    total = sum(map(len, contents(folder).values()))
    assert (total, total) == steps[-1][:2]
    store.download(bucket, "data/", tmp_path / "back")
    assert contents(folder) == contents(tmp_path / "back")


def test_the_keys_of_a_folder_begin_with_what_is_given(store: Storage, bucket: str, folder: Path) -> None:
    """With a slash at its end, or without."""
    store.upload(bucket, folder, key="run/1")
    store.upload(bucket, folder, key="run/2/")
    assert {"run/1/a.txt", "run/2/a.txt"} <= set(store.ls(bucket, "run/"))


def test_links_count_as_what_they_lead_to(store: Storage, bucket: str, folder: Path, tmp_path: Path) -> None:
    """A link to a folder that holds it is left out, and one that leads nowhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "f.txt").write_text("elsewhere")
    (folder / "file").symlink_to(tmp_path / "elsewhere" / "f.txt")
    (folder / "other").symlink_to(tmp_path / "elsewhere")
    (folder / "b" / "loop").symlink_to(folder)
    (folder / "nowhere").symlink_to(tmp_path / "none")
    store.upload(bucket, folder, key="k/")
    assert {"k/file", "k/other/f.txt"} <= set(store.ls(bucket))
    assert not [key for key in store.ls(bucket) if "loop" in key or "nowhere" in key]


def test_an_empty_folder_is_refused(store: Storage, tmp_path: Path) -> None:
    """There would be nothing of it."""
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds no file"):
        store.upload("bucket", tmp_path / "empty")


class Evil(BaseHTTPRequestHandler):
    """List keys that no honest client can make, as a server in the wrong hands does."""

    server: Any

    def do_GET(self) -> None:
        """List them."""
        rows = "".join(f"<Contents><Key>{key}</Key><Size>4</Size></Contents>" for key in self.server.keys)
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.mark.parametrize("key", ["p/../../evil", "p/a/../../../evil", "p//evil", "p/./evil"])
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    """Nothing at all is written then."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    server.keys = ["p/good", key]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    with (
        storage_at(f"http://127.0.0.1:{server.server_port}") as store,
        pytest.raises(ConfigError, match=r"would be written outside of the folder.*Nothing was written"),
    ):
        store.download("bucket", "p/", tmp_path / "home" / "back")
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]
    server.shutdown()
    server.server_close()


def test_no_link_leads_out_of_the_folder(store: Storage, bucket: str, file: Make, tmp_path: Path) -> None:
    """It may have been planted in a folder that others write to."""
    store.upload(bucket, file(10), key="p/link/file")
    (tmp_path / "back").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "back" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="where a link leads"):
        store.download(bucket, "p/", tmp_path / "back")
    assert [] == [*(tmp_path / "outside").iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "server", [*CHECKING, pytest.param("moto", marks=[pytest.mark.everything] if CHECKING else [])], indirect=True
)
def test_lists_have_all_pages(store: Storage, bucket: str, tmp_path: Path) -> None:
    """A page has a thousand; so has a request that removes objects."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1005):
        (folder / f"{number:04}").write_bytes(b"")
    store.upload(bucket, folder, key="many/")
    assert [f"many/{number:04}" for number in range(1005)] == store.ls(bucket, "many/")
    store.rm(bucket, "many", recursive=True)
    assert [] == store.ls(bucket)


def test_removing(store: Storage, bucket: str, file: Make) -> None:
    """One object, all below a prefix, and what is not there."""
    for key in ("a", "ab", "a/b", "a/c/d"):
        store.upload(bucket, file(1), key=key)
    store.rm(bucket, "a", recursive=True)
    assert ["a", "ab"] == store.ls(bucket)
    store.rm(bucket, "a")
    store.rm(bucket, "none")
    store.rm(bucket, "none/", recursive=True)
    assert ["ab"] == store.ls(bucket)


def test_existing(store: Storage, bucket: str, file: Make) -> None:
    """An object, and a prefix with anything below it."""
    store.upload(bucket, file(1), key="a/b")
    found = {key: store.exists(bucket, key) for key in ("a/b", "a", "a/", "b/")}
    assert {"a/b": True, "a": False, "a/": True, "b/": False} == found
