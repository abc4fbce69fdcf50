"""
Write docs/faults.md: what comes of each fault of each cloud, and what is left.

    python -m tests.clouds.fault_page             all sections
    python -m tests.clouds.fault_page aws         this one, and the others stay

A cloud has a section if it has a module `tests.clouds.NAME.fault_table` with `TITLE`, `FAULTS`, `cloud` (a context
manager that runs it) and `provoke(fault, cloud)`.
What is left is read from the cloud's own books and from the processes that live on this machine; the journal of the
client is not asked.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from tests.clouds.cloud import ROOT
from tests.clouds.provoking import WORKED, Row

PAGE = ROOT / "docs" / "faults.md"

_HEAD = """# Faults

<!-- Made by python -m tests.clouds.fault_page; do not edit. -->

Each fault was provoked against a test cloud, over HTTP and on the network of real SSH hosts, or against the
[rehearsal cloud](rehearsal.md).
The pool either worked, which means that a function returned its result, or ended in the error that is shown.
What was left when the pool had been left is what the cloud's own books and the processes of the machine say.
"""
_COLUMNS = """
| fault | outcome | instances left | processes left |
|---|---|---|---|
"""


def clouds() -> list[str]:
    """Name the clouds that have a section, in its order."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/fault_table.py"))


def table(name: str) -> Any:
    """Return the module of a cloud's faults."""
    return importlib.import_module(f"tests.clouds.{name}.fault_table")


def published(title: str) -> dict[str, list[str]]:
    """Read the rows of a section."""
    lines = [line for line in _sections().get(title, "").splitlines() if line.startswith("| ")][1:]
    rows = [[cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def check_section(title: str, faults: Any) -> None:
    """Fail if a fault has no row, or one whose cells are empty, or something was left."""
    rows = published(title)
    assert [fault.name for fault in faults] == list(rows)
    for fault in faults:
        outcome, *left = rows[fault.name]
        assert fault.works == (outcome == WORKED), fault.name
        assert fault.works or outcome.startswith("`"), fault.name
        assert ["0", "0"] == left, fault.name


def check_row(title: str, name: str, row: Row) -> None:
    """Fail if something else comes of a fault than the page says; words of errors may differ."""
    outcome, instances, processes = published(title)[name]
    assert outcome.partition(":")[0] == row.outcome.partition(":")[0]
    assert (instances, processes) == (str(row.instances), str(row.processes))


def _sections() -> dict[str, str]:
    """Read the sections of the page, by their titles."""
    if not PAGE.exists():
        return {}
    _, *parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _section(module: Any) -> str:
    """Provoke all faults of a cloud; one that could not be provoked leaves its cells empty."""
    lines = []
    with module.cloud() as cloud:
        if cloud is not None:
            os.environ.update(cloud.environment())
        for fault in module.FAULTS:
            if cloud is not None:
                cloud.calm()
            began = time.monotonic()
            try:
                row = module.provoke(fault, cloud)
                cells = f"{row.outcome} | {row.instances} | {row.processes}"
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
                cells = " | | "
            lines.append(f"| {fault.name} | {cells} |\n")
            print(f"{time.monotonic() - began:5.1f} s {lines[-1]}", end="", flush=True)
    return f"\n{_COLUMNS}{''.join(lines)}"


def main(*names: str) -> None:
    """Write the sections of some clouds anew, or of all."""
    sections = _sections()
    modules = {table(name).TITLE: table(name) for name in clouds()}
    for name in names or clouds():
        sections[table(name).TITLE] = _section(table(name))
    body = "".join(f"\n## {title}\n\n{sections[title].strip()}\n" for title in modules if title in sections)
    PAGE.write_text(_HEAD + body, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
