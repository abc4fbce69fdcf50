"""
What holds for every test: its threads end with it, and the environment is as it was.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from tests.seeds import announce, share, some

SMALL = ("browser", "chaos", "clouds", "containers", "gpus", "packaging", "slow")
"""Marks of suites that few modules have. The module itself names them, or lies in the folder of that name."""

# A deadline would time the machine and not the code.
settings.register_profile("skyward", deadline=None, print_blob=True, max_examples=share(100, least=0.4))
settings.load_profile("skyward")


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests a home of their own, so that logs and settings of the user's stay out of it."""
    # A shell has what it starts in the background ignore it, and children inherit that; some tests send it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Workers inherit it, and so agree on what is drawn.
    announce()
    home = os.path.expanduser("~")
    os.environ.setdefault("XDG_CACHE_HOME", os.path.join(home, ".cache"))
    # A test that looks for credentials is not to ask the network for them.
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-of-tests-")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the modules that have no test of the suite unread: importing all takes each worker ten seconds."""
    if not collection_path.match("test_*.py"):
        return None
    if not _has(collection_path.relative_to(config.rootpath).as_posix()):
        return True
    chosen, text = config.getoption("markexpr"), collection_path.read_text(encoding="utf-8")
    whole = re.search(r"^pytestmark = \[?pytest[.]mark[.](\w+)", text, re.MULTILINE)
    if whole and re.search(rf"\bnot {whole[1]}\b", chosen):
        return True
    suite = chosen.partition(" ")[0]
    if suite != "gpus" and "gpus" in collection_path.parts:
        # They load frameworks that other environments lack.
        return True
    if suite not in SMALL or suite in collection_path.parts or re.search(rf"\bmark[.]{suite}\b", text):
        return None
    return True


def _has(module: str) -> bool:
    """Return whether this run has a module: a third of them, drawn anew, but for the places that `PART_BUT` names."""
    whole = os.environ.get("PART_BUT", "").split()
    return (
        not whole or module.startswith(tuple(whole)) or some(f"modules: {module}", [True, False, False], least=1 / 3)[0]
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep half of the variants of a slow test that has more than two, where a run has a share of what is drawn."""
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") and getattr(item, "callspec", None):
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for name, found in variants.items() if len(found) > 2 for item in some(name, found, least=0.5)}
    left = {item for found in variants.values() if len(found) > 2 for item in found} - kept
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=sorted(left, key=lambda item: item.nodeid))


def _modules_of(item: pytest.Item) -> dict[str, ModuleType]:
    """Give a test's module, and those of other tests that it has something of, by name."""
    if not isinstance(item, pytest.Function):
        return {}
    names = [item.module.__name__, *(getattr(value, "__module__", None) for value in vars(item.module).values())]
    return {name: _collected[name] for name in names if isinstance(name, str) and name in _collected}


_collected: dict[str, ModuleType] = {}


def pytest_collection_finish(session: pytest.Session) -> None:
    """
    Forget the modules of tests until they run.

    A pool ships what its program has loaded, which here would be the 2 MB of all tests that were collected, each time.
    """
    for item in session.items:
        if isinstance(item, pytest.Function):
            _collected[item.module.__name__] = item.module
    for name in _collected:
        sys.modules.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have the modules of a test loaded while it runs."""
    own = _modules_of(item)
    sys.modules.update(own)
    try:
        return (yield)
    finally:
        for name in own:
            sys.modules.pop(name, None)


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to draw again what this run draws."""
    return announce()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the tests' home."""
    if os.path.basename(os.environ["HOME"]).startswith("home-of-tests-"):
        shutil.rmtree(os.environ["HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def _leave_no_threads_behind() -> Iterator[None]:
    """Fail a test that leaves a thread behind which would keep the interpreter from ending."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    for thread in left:
        thread.join(timeout=5)
    assert [] == [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(autouse=True)
def _keep_the_environment() -> Iterator[None]:
    """Put the environment back as it was."""
    before = dict(os.environ)
    yield
    # pytest keeps the running phase there and takes it away itself.
    before.pop("PYTEST_CURRENT_TEST", None)
    for name in set(os.environ) - set(before) - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update(before)
