import os
import subprocess
import sys
import threading

import pytest

from skyward.errors import ProtocolError
from skyward.node.data.module_files import write_files


def files_below(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_files_are_written_with_their_folders(tmp_path):
    """
    Files and the folders they lie in are made, the root included.
    """
    root = tmp_path / "new"
    assert write_files(root, [("a.py", b"x = 1"), ("p/q/__init__.py", b"")]) == ("a.py", "p/q/__init__.py")
    assert files_below(root) == ["a.py", "p/q/__init__.py"]
    assert (root / "a.py").read_bytes() == b"x = 1"


def test_second_time_changes_nothing(tmp_path):
    """
    A file that is there with the same contents keeps its very inode; another one is replaced.
    """
    write_files(tmp_path, [("a.py", b"x = 1"), ("b.py", b"x = 1")])
    before = (tmp_path / "a.py").stat().st_ino
    assert write_files(tmp_path, [("a.py", b"x = 1"), ("b.py", b"x = 2")]) == ("b.py",)
    assert (tmp_path / "a.py").stat().st_ino == before
    assert (tmp_path / "b.py").read_bytes() == b"x = 2"


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a/..", "", ".", "a//b", "a/", "..\\x", "a\0b"])
def test_paths_that_leave_the_folder_are_refused(tmp_path, path):
    """
    Absolute and climbing paths are refused, before anything else is written.
    """
    root = tmp_path / "root"
    with pytest.raises(ProtocolError, match="no relative path below its folder"):
        write_files(root, [("fine.py", b""), (path, b"bad")])
    assert files_below(tmp_path) == []


def test_links_out_of_the_folder_are_refused(tmp_path):
    """
    A folder that is a link to elsewhere is not written through, and a file that is a link is replaced.
    """
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "file.py").write_bytes(b"theirs")
    (root / "way").symlink_to(outside)
    (root / "file.py").symlink_to(outside / "file.py")
    with pytest.raises(ProtocolError, match="leaves its folder through a link"):
        write_files(root, [("way/x.py", b"")])
    write_files(root, [("file.py", b"theirs")])
    assert not (root / "file.py").is_symlink()
    assert files_below(outside) == ["file.py"]


def test_nothing_is_left_of_a_failed_write(tmp_path):
    """
    Where a file cannot take its place, its draft is removed.
    """
    (tmp_path / "a.py").mkdir()
    with pytest.raises(OSError, match=r"a\.py"):
        write_files(tmp_path, [("a.py", b"x")])
    assert files_below(tmp_path) == []


def test_readers_see_whole_files_only(tmp_path):
    """
    While a file is rewritten over and over, a reader finds one of its contents, whole.
    """
    contents = [bytes([number]) * 200_000 for number in range(2)]
    write_files(tmp_path, [("f", contents[0])])
    done = threading.Event()

    def rewrite():
        for number in range(100):
            write_files(tmp_path, [("f", contents[number % 2])])
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add((tmp_path / "f").read_bytes())
    writer.join()
    assert seen <= set(contents)


def test_changed_source_is_what_python_imports(tmp_path):
    """
    A source of the same size and second as its forerunner is compiled anew.
    """
    run = [sys.executable, "-c", "import m_of_test; print(m_of_test.x)"]
    seen = []
    for text in (b"x = 1", b"x = 2"):
        write_files(tmp_path, [("m_of_test.py", text)])
        os.utime(tmp_path / "m_of_test.py", (1_700_000_000, 1_700_000_000))
        environment = {"PYTHONPATH": str(tmp_path)}
        seen.append(subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout)
    assert seen == ["1\n", "2\n"]


def test_paths_that_are_no_text_are_refused(tmp_path):
    """Nothing is written."""
    with pytest.raises(ProtocolError, match="no text"):
        write_files(tmp_path, [("a", b""), (3, b"")])
    assert not list(tmp_path.iterdir())
