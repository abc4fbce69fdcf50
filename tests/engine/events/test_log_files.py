"""Skyward's own log is written while a pool is open, as it was asked for."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.events.log_files import logging_to, write_event
from skyward.model.events.event import NodeReady
from skyward.plain import conceal
from tests.full_disk import full_disk


def _config(path: Path, **more: object) -> sky.LogConfig:
    return sky.LogConfig(file=str(path / "logs" / "skyward.log"), console=False, **more)  # type: ignore[arg-type]


def test_pool_writes_its_life_to_the_file(tmp_path: Path) -> None:
    """What happens to nodes stands in the file; the handler is gone with the pool."""
    config = _config(tmp_path)
    with sky.Compute(console="silent", logging=config):
        pass
    text = Path(config.file).read_text()
    assert "NodeReady pool=pool node=0 ready" in text
    assert "ClusterDestroyed" in text
    assert not logging.getLogger("skyward").handlers


def test_no_log_is_written_when_it_is_off(tmp_path: Path) -> None:
    """`logging=False` opens no file."""
    with logging_to(None):
        write_event(NodeReady(node=1), pool="train")
    assert list(tmp_path.iterdir()) == []


def test_level_decides_what_is_written(tmp_path: Path) -> None:
    """Events are logged at INFO."""
    config = _config(tmp_path, level="WARNING")
    with logging_to(config):
        write_event(NodeReady(node=1), pool="train")
        logging.getLogger("skyward.x").warning("look here")
    text = Path(config.file).read_text()
    assert "look here" in text
    assert "NodeReady" not in text


def test_a_secret_of_a_configuration_file_is_hidden(tmp_path: Path) -> None:
    """In each line, the traceback of an error too."""
    conceal("hunter2-of-a-log")
    config = _config(tmp_path)
    with logging_to(config):
        try:
            raise ValueError("hunter2-of-a-log")
        except ValueError:
            logging.getLogger("skyward.x").warning("the key %s", "hunter2-of-a-log", exc_info=True)
    text = Path(config.file).read_text()
    assert "the key ***" in text
    assert "hunter2" not in text.replace('raise ValueError("***")', "")


def test_pools_configured_alike_share_a_file(tmp_path: Path) -> None:
    """Each line stands there once, and the file stays open until the last pool leaves."""
    config = _config(tmp_path)
    with logging_to(config):
        with logging_to(config):
            write_event(NodeReady(node=1), pool="train")
        write_event(NodeReady(node=2), pool="train")
    assert Path(config.file).read_text().count("NodeReady") == 2


def test_old_files_are_kept_up_to_the_retention(tmp_path: Path) -> None:
    """A new file is begun at the size asked for."""
    config = _config(tmp_path, rotation="1 KB", retention=2)
    with logging_to(config):
        for node in range(100):
            write_event(NodeReady(node=node), pool="train")
    assert len(list((tmp_path / "logs").iterdir())) == 3


@pytest.mark.parametrize("rotation", ["50 MB", "1 day"])
def test_a_log_without_room_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], rotation: str) -> None:
    """What is logged while it is full is lost, and the pool is left as it is without a log."""
    config = _config(tmp_path, rotation=rotation)
    with full_disk(), logging_to(config):
        for node in range(3):
            write_event(NodeReady(node=node), pool="train")
    assert 1 == capsys.readouterr().err.count(f"the log {config.file} cannot be written any more")


def test_the_log_is_the_users_alone(tmp_path: Path) -> None:
    """Whatever the umask."""
    config = _config(tmp_path)
    before = os.umask(0)
    try:
        with logging_to(config):
            write_event(NodeReady(node=1), pool="train")
    finally:
        os.umask(before)
    assert 0o600 == Path(config.file).stat().st_mode & 0o777


def test_what_is_logged_is_plain(tmp_path: Path) -> None:
    """A cloud's words neither act on the terminal that shows the file, nor forge a record of their own."""
    config = _config(tmp_path)
    with logging_to(config):
        logging.getLogger("skyward.x").warning("refused: %s", "\x1b]0;t\x07no\u202e\n2026-01-01 INFO forged")
    first, second = Path(config.file).read_text().splitlines()
    assert first.endswith("refused: no\\u202e")
    assert "  | 2026-01-01 INFO forged" == second
