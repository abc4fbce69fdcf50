"""What may outlive a server is written down, for this user alone."""

from __future__ import annotations

import stat
from pathlib import Path

from skyward_mcp.record import Leased, Record

ONE = Leased(name="a-1", most=2.0, keep=False, until=100.0)


def test_what_was_written_is_read_until_its_lease_ends(tmp_path: Path) -> None:
    """Then its file is removed."""
    record = Record(tmp_path / "mcp")
    assert [] == record.all(now=0.0)
    record.write(ONE)
    assert [ONE] == record.all(now=99.0)
    assert 0o600 == stat.S_IMODE((tmp_path / "mcp" / "a-1.json").stat().st_mode)
    assert [] == record.all(now=101.0)
    assert [] == list((tmp_path / "mcp").iterdir())


def test_a_file_that_is_cut_off_hides_no_other(tmp_path: Path) -> None:
    """Neither does one of another version."""
    record = Record(tmp_path / "mcp")
    record.write(ONE)
    (tmp_path / "mcp" / "b-2.json").write_text('{"name": "b')
    (tmp_path / "mcp" / "c-3.json").write_text('{"name": "c-3", "more": 1}')
    assert [ONE] == record.all(now=0.0)
    record.remove("a-1")
    record.remove("a-1")
    assert [] == record.all(now=0.0)
