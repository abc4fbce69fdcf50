"""Pools in a real Jupyter kernel."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebooks.kernels import Kernel, kernel
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

FUNCTIONS = """
    import os, threading, time
    from pathlib import Path
    import skyward as sky

    @sky.function
    def double(x):
        print("doubling", x, flush=True)
        return 2 * x

    @sky.function
    def waits(path, said):
        while not os.path.exists(path):
            time.sleep(0.01)
        print(said, flush=True)

    @sky.function
    def sleeps(path=""):
        if path:
            Path(path).touch()
        # In pieces, between which a thread can be interrupted.
        while True:
            time.sleep(0.02)

    @sky.function
    def processes():
        return os.getpid(), os.getppid()
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """Start a kernel, with a pool that its cells have in common."""
    with kernel(tmp_path_factory.mktemp("notebook")) as running:
        running.run(FUNCTIONS)
        running.opened = running.run("pool = sky.Compute(nodes=2, concurrency=2, logging=False); pool.open()")
        yield running
        running.run("pool.close()")


def test_a_pool_is_a_widget_under_the_cell_that_opened_it(notebook: Kernel) -> None:
    """It shows the nodes, and is the same display with each change."""
    notebook.run("assert double(4) >> pool == 8")
    notebook.until(lambda: "node-1" in notebook.shown(notebook.opened)[-1]["text/html"])
    notebook.until(lambda: "done" in notebook.shown(notebook.opened)[-1]["text/html"])
    notebook.run("double(4) >> pool")
    notebook.until(lambda: len(notebook.shown(notebook.opened)) > 1)
    first, *later = notebook.shown(notebook.opened)
    assert {"text/html", "text/plain"} == set(first)
    assert later
    assert 1 == len(notebook.of(notebook.opened, "display_data"))


def test_the_widget_ends_with_what_the_pool_did(notebook: Kernel) -> None:
    """A pool of one cell has all of it there, and no second line."""
    cell = notebook.run("""
        with sky.Compute(logging=False) as other:
            assert [0, 2, 4] == other.map(double, range(3))
    """)
    notebook.until(lambda: "closed" in notebook.shown(cell)[-1]["text/html"])
    assert "3 calls done" in notebook.shown(cell)[-1]["text/html"]
    assert "3 calls done" in notebook.shown(cell)[-1]["text/plain"]
    assert "doubling 2" in notebook.text(cell)
    assert "calls done" not in notebook.text(cell)


def test_a_cell_that_closes_a_pool_says_what_it_did(notebook: Kernel) -> None:
    """The widget is under the cell that opened it."""
    notebook.run("another = sky.Compute(logging=False); another.open()")
    notebook.run("double(1) >> another")
    closed = notebook.run("another.close()")
    notebook.until(lambda: "1 call done" in notebook.text(closed))


def test_output_is_under_the_cell_that_sent_the_call(notebook: Kernel, tmp_path: Path) -> None:
    """Also while a later cell runs."""
    gate = tmp_path / "gate"
    first = notebook.run(f"promised = waits({str(gate)!r}, 'of the first') > pool")
    second = notebook.run(f"Path({str(gate)!r}).touch(); promised.result(); double(21) >> pool")
    notebook.until(lambda: "doubling 21" in notebook.text(second))
    assert "of the first" in notebook.text(first)
    assert "of the first" not in notebook.text(second)


def test_items_that_a_later_cell_takes_print_under_the_first(notebook: Kernel) -> None:
    """A map whose results are streamed is of the cell that began it."""
    first = notebook.run("stream = pool.map(double, iter(range(200)), stream=True); next(stream)")
    second = notebook.run("assert 199 == len(list(stream))")
    notebook.until(lambda: "doubling 199" in notebook.text(first))
    assert "doubling" not in notebook.text(second)


def test_what_a_cell_prints_comes_in_order(notebook: Kernel) -> None:
    """Lines of calls between those of the cell itself."""
    cell = notebook.run("print('before'); double(5) >> pool; print('after')")
    text = notebook.text(cell)
    assert text.index("before") < text.index("doubling 5") < text.index("after")


def test_an_interrupt_cancels_the_calls_of_its_cell(notebook: Kernel, tmp_path: Path) -> None:
    """Those of other cells go on, and the pool is ready for the next cell."""
    gate, began = tmp_path / "gate", tmp_path / "began"
    notebook.run(f"other = waits({str(gate)!r}, 'still here') > pool")
    cell = notebook.begin(f"mine = [sleeps({str(began)!r}) > pool, sleeps() > pool]; time.sleep(600)")
    until(began.exists)
    notebook.manager.interrupt_kernel()
    assert "KeyboardInterrupt" in (notebook.ended(cell) or "")
    notebook.run(f"""
        from concurrent.futures import CancelledError, wait
        assert not wait(mine, timeout=30).not_done
        for future in mine:
            try:
                future.result()
            except CancelledError:
                continue
            raise AssertionError("it was not cancelled")
        assert not other.done()
        Path({str(gate)!r}).touch()
        other.result(timeout=30)
        assert pool.is_active and double(3) >> pool == 6
    """)


def test_an_interrupt_reaches_a_cell_that_waits_for_a_call(notebook: Kernel, tmp_path: Path) -> None:
    """With `>>`."""
    began = tmp_path / "began"
    cell = notebook.begin(f"sleeps({str(began)!r}) >> pool")
    until(began.exists)
    notebook.manager.interrupt_kernel()
    assert "KeyboardInterrupt" in (notebook.ended(cell) or "")
    notebook.run("assert double(3) >> pool == 6")


def test_an_interrupt_reaches_a_cell_that_awaits(notebook: Kernel, tmp_path: Path) -> None:
    """Its calls end as well."""
    began = tmp_path / "began"
    cell = notebook.begin(f"awaited = sleeps({str(began)!r}) > pool; await awaited")
    until(began.exists)
    notebook.manager.interrupt_kernel()
    assert notebook.ended(cell) is not None
    notebook.run("""
        from concurrent.futures import wait
        assert not wait([awaited], timeout=30).not_done
        assert double(3) >> pool == 6
    """)


def test_a_front_end_of_text_gets_lines(notebook: Kernel) -> None:
    """As the console of a terminal that runs a kernel is."""
    cell = notebook.run(
        """
        with sky.Compute(logging=False) as other:
            double(7) >> other
        """,
        notebook=False,
    )
    assert [] == notebook.of(cell, "display_data")
    for line in ("ready", "doubling 7", "1 call done"):
        assert line in notebook.text(cell)


def test_a_silent_pool_shows_nothing(notebook: Kernel, tmp_path: Path) -> None:
    """An interrupt cancels its calls all the same."""
    began = tmp_path / "began"
    opened = notebook.run("quiet = sky.Compute(console=False, logging=False); quiet.open()")
    cell = notebook.begin(f"mine = sleeps({str(began)!r}) > quiet; time.sleep(600)")
    until(began.exists)
    notebook.manager.interrupt_kernel()
    notebook.ended(cell)
    notebook.run("""
        from concurrent.futures import wait
        assert not wait([mine], timeout=30).not_done
        quiet.close()
    """)
    assert [] == notebook.of(opened, "display_data") + notebook.of(opened, "stream")


def test_a_pool_shows_itself_as_html_and_as_text(notebook: Kernel) -> None:
    """As the last expression of a cell."""
    cell = notebook.run("pool")
    [result] = notebook.of(cell, "execute_result")
    assert "pool" in result["content"]["data"]["text/html"]
    assert result["content"]["data"]["text/plain"].startswith("<pool ")


def test_a_notebook_that_is_run_as_a_batch_keeps_the_end(tmp_path: Path) -> None:
    """As HTML and as text, under the cell that opened the pool; output is under its own."""
    cells = [
        textwrap.dedent(FUNCTIONS),
        "pool = sky.Compute(logging=False)\npool.open()",
        "double(8) >> pool",
        "pool.close()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    _, opened, called, closed = (cell.outputs for cell in notebook.cells)
    [shown] = [one for one in opened if one.output_type == "display_data"]
    assert "1 call done" in shown.data["text/html"]
    assert shown.data["text/plain"].startswith("1 call done")
    assert "doubling 8" in called[0].text
    assert "1 call done" in closed[0].text


@pytest.mark.parametrize("restart", [True, False], ids=["restart", "shutdown"])
def test_a_kernel_that_ends_terminates_its_nodes(tmp_path: Path, restart: bool) -> None:
    """Whatever runs there."""
    pids = tmp_path / "pids"
    with kernel(tmp_path) as running:
        running.run(FUNCTIONS)
        running.run(f"""
            pool = sky.Compute(logging=False); pool.open()
            Path({str(pids)!r}).write_text(" ".join(map(str, processes() >> pool)))
        """)
        running.begin("sleeps() >> pool")
        if restart:
            running.manager.restart_kernel()
        else:
            running.manager.shutdown_kernel()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids.read_text().split()))
