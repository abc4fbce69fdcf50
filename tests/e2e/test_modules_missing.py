"""What a node lacks, what only the program's own `__main__` has, and plugins that fail where they are called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.instance import InstanceInfo
from skyward.model.spec.image import Image
from skyward.node.agent.descendants import MARK
from tests.hosts import environments
from tests.waiting import until

pytestmark = pytest.mark.slow


@sky.function
def ok() -> str:
    return "ok"


# Modules that the node does not have.


@sky.function
def needs(name: str) -> str:
    """Import a module by its name."""
    return str(__import__(name).__name__)


@sky.function
def needs_by_statement() -> None:
    import no_such_module_anywhere  # type: ignore[import-not-found]  # noqa: F401


@sky.function
def needs_late() -> Iterator[int]:
    yield 1
    import no_such_module_anywhere.inner  # type: ignore[import-not-found]  # noqa: F401


def test_missing_module_is_the_functions_own_exception(pool: sky.Pool) -> None:
    """Of its own type, with the module's name; the pool goes on, and so does the worker."""
    before = sky.function(os.getpid)() @ pool
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere") as caught:
        needs_by_statement() >> pool
    assert type(caught.value) is ModuleNotFoundError
    assert caught.value.name == "no_such_module_anywhere"
    assert any("needs_by_statement" in note and "node " in note for note in caught.value.__notes__)
    assert sky.function(os.getpid)() @ pool == before


def test_missing_module_whichever_way_the_call_was_sent(pool: sky.Pool) -> None:
    """A future, a broadcast, a group, a map, a stream."""
    future = needs("no_such_module_anywhere") > pool
    assert isinstance(future.exception(timeout=20), ModuleNotFoundError)
    with pytest.raises(ModuleNotFoundError):
        needs("no_such_module_anywhere") @ pool
    first, second = sky.gather(needs("no_such_module_anywhere"), needs("json"), return_exceptions=True) >> pool
    assert (type(first), second) == (ModuleNotFoundError, "json")
    with pytest.raises(ModuleNotFoundError) as caught:
        pool.map(needs, ["json", "no_such_module_anywhere", "json"])
    assert sky.partial(caught.value)[0] == "json"
    stream = needs_late() >> pool
    assert next(stream) == 1
    with pytest.raises(ModuleNotFoundError, match=r"no_such_module_anywhere"):
        next(stream)
    assert ok() @ pool == ["ok", "ok"]


def test_name_that_a_module_lacks(pool: sky.Pool) -> None:
    """Is an ImportError that says so."""

    @sky.function
    def old() -> None:
        from json import no_such_name  # type: ignore[attr-defined]  # noqa: F401

    with pytest.raises(ImportError, match="no_such_name") as caught:
        old() >> pool
    assert not isinstance(caught.value, ModuleNotFoundError)
    assert ok() @ pool == ["ok", "ok"]


def test_module_of_ones_own_that_needs_a_missing_one(tmp_path: Path) -> None:
    """The error names the one that is missing, and not the one that asked for it."""
    (tmp_path / "helper.py").write_text("import only_the_client_has_it\n\ndef help():\n    return 1\n")
    run(
        tmp_path,
        """
        import sys, types
        import skyward as sky

        sys.modules["only_the_client_has_it"] = types.ModuleType("only_the_client_has_it")
        import helper

        with sky.Compute(console="silent") as pool:
            try:
                sky.function(helper.help)() >> pool
            except (sky.SerializationError, ModuleNotFoundError) as error:
                assert "'only_the_client_has_it'" in str(error), error
                assert "'helper'" not in str(error), error
                print("named")
            print(sky.function(lambda: "on")() >> pool)
        """,
        says="named on",
    )


# Exceptions of the program's own.

SCRIPT = """
import skyward as sky

class Broken(Exception):
    pass

class VeryBroken(Broken, LookupError):
    def __init__(self, code):
        super().__init__(code)
        self.code = code

@sky.function
def fail(code=7):
    raise VeryBroken(code)

@sky.function
def convert():
    try:
        fail.local(8)
    except Broken as error:
        raise ValueError("converted") from error

@sky.function
def items():
    yield 1
    raise VeryBroken(9)

@sky.function
def caught_there():
    try:
        fail.local()
    except VeryBroken:
        return "there"

@sky.function
def many():
    raise ExceptionGroup("two", [VeryBroken(1), Broken("plain")])

def main():
    with sky.Compute(nodes=2, console="silent", logging=False) as pool:
        try:
            fail() >> pool
        except VeryBroken as error:
            assert type(error) is VeryBroken and error.code == 7 and error.args == (7,), error
            print("caught")
        for run in (lambda: fail() @ pool, lambda: pool.map(fail, [7]), lambda: (fail() & fail()) >> pool,
                    lambda: (fail() > pool).result(), lambda: fail.local()):
            try:
                run()
            except Broken as error:
                assert type(error) is VeryBroken and error.code == 7, error
                print("again")
        try:
            convert() >> pool
        except ValueError as error:
            assert type(error.__cause__) is VeryBroken and error.__cause__.code == 8, error.__cause__
            print("cause")
        try:
            list(items() >> pool)
        except VeryBroken as error:
            print("stream")
        try:
            many() >> pool
        except* VeryBroken as group:
            print("group")
        except* Broken as group:
            print("group")
        print(caught_there() >> pool)

if __name__ == "__main__":
    main()
"""

SAYS = "caught again again again again again cause stream group group there"


@pytest.mark.parametrize("way", ["file", "-c", "-m"])
def test_exception_of_main_is_caught_under_its_own_type(tmp_path: Path, way: str) -> None:
    """Its class is the script's, wherever the script has its code from."""
    if way == "-c":
        run(tmp_path, SCRIPT, says=SAYS, argv=("-c", SCRIPT))
    elif way == "-m":
        (tmp_path / "room").mkdir()
        (tmp_path / "room" / "__init__.py").touch()
        (tmp_path / "room" / "script.py").write_text(SCRIPT)
        run(tmp_path, SCRIPT, says=SAYS, argv=("-m", "room.script"))
    else:
        run(tmp_path, SCRIPT, says=SAYS)


def test_exception_of_main_that_nobody_catches(tmp_path: Path) -> None:
    """Ends the script with the traceback of the node and its own name in the last line."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("main()\n", "with sky.Compute(console='silent') as p: fail() >> p\n")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 1
    assert "in fail" in done.stderr
    assert any(line.startswith(("VeryBroken: 7", "__main__.VeryBroken: 7")) for line in done.stderr.splitlines())


def test_exception_of_a_module_beside_the_script(tmp_path: Path) -> None:
    """Is the class that both know by its name."""
    (tmp_path / "problems.py").write_text("class Problem(Exception):\n    pass\n")
    run(
        tmp_path,
        """
        import skyward as sky
        from problems import Problem

        @sky.function
        def fail():
            raise Problem("ours")

        with sky.Compute(console="silent") as pool:
            try:
                fail() >> pool
            except Problem as error:
                print(type(error) is Problem, error)
        """,
        says="True ours",
    )


def run(directory: Path, program: str, *, says: str, argv: tuple[str, ...] = ("script.py",)) -> None:
    """Run a program as a user would, and compare the words it prints."""
    (directory / "script.py").write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, *argv], cwd=directory, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split() == says.split()


# Plugins that raise leave no process behind.


class Watch:
    """Tell which processes of nodes this test has started, whatever their parents are now."""

    def __init__(self, mark: str) -> None:
        self._mark = f"\0OF_TEST={mark}\0".encode()

    def processes(self) -> list[int]:
        """List those that live; agents, workers, app hosts and all that they started."""
        return [pid for pid, environ in environments() if self._mark in environ and f"\0{MARK}=".encode() in environ]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Mark what the test starts, and end what is left of it whatever the test finds."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("OF_TEST", mark)
    watch = Watch(mark)
    yield watch
    for pid in watch.processes():
        os.kill(pid, signal.SIGKILL)


def daemonise(log: str) -> None:
    """Start a process that does all it can to get away, and write down this one, its parent and that one."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            os.closerange(3, 100)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(300)
        os._exit(0)
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n{os.getppid()}\n{os.read(read, 20).decode()}\n")


def raises_at_once(info: InstanceInfo) -> Any:
    """Fail before there is a context manager."""
    raise OSError("broken inside")


@contextmanager
def raises_on_the_way_in(info: InstanceInfo) -> Iterator[None]:
    """Fail in `__enter__`."""
    if info.node >= 0:
        raise OSError("broken inside")
    yield


def around_named(plugin: sky.Plugin, hook: str, around: Callable[[InstanceInfo], Any]) -> sky.Plugin:
    """Give a plugin one of its `around` hooks."""
    completed: sky.Plugin = getattr(plugin, f"with_{hook}")(around)
    return completed


@pytest.mark.parametrize("hook", ["around_process", "around_app"])
@pytest.mark.parametrize("fails", [raises_at_once, raises_on_the_way_in])
def test_plugin_that_raises_on_a_node(watch: Watch, tmp_path: Path, hook: str, fails: Callable[..., Any]) -> None:
    """On every node, after it has started a process of its own."""
    log = str(tmp_path / "log")

    def around(info: InstanceInfo) -> Any:
        daemonise(log)
        return fails(info)

    plugin = around_named(sky.Plugin.create("culprit"), hook, around)
    with (
        pytest.raises(sky.PluginError, match=f"'culprit' failed in {hook}.*OSError: broken inside") as caught,
        sky.Compute(nodes=2, console="silent", plugins=[sky.Plugin.create("innocent"), plugin]),
    ):
        raise AssertionError("the pool is open")
    assert (caught.value.plugin, caught.value.hook) == ("culprit", hook)
    assert "innocent" not in str(caught.value)
    assert watch.processes() == []
    assert alive(log) == []


@pytest.mark.parametrize("hook", ["around_process", "around_app"])
def test_plugin_that_raises_on_one_node_of_two(watch: Watch, tmp_path: Path, hook: str) -> None:
    """The other node has been up, with two workers on it."""
    log = str(tmp_path / "log")
    up = tmp_path / "up"

    @contextmanager
    def around(info: InstanceInfo) -> Iterator[None]:
        daemonise(log)
        if info.node == 1:
            until(up.exists)
            raise OSError("broken inside")
        up.touch()
        yield

    plugin = around_named(sky.Plugin.create("culprit"), hook, around)
    pool = sky.Compute(nodes=2, per_node=2, console="silent", plugins=[plugin])
    with pytest.raises(sky.PluginError, match=f"'culprit' failed in {hook}.*broken inside"):
        pool.open()
    assert not pool.is_active
    assert up.exists()
    assert watch.processes() == []
    assert alive(log) == []


def test_plugin_that_raises_in_the_image_transform(watch: Watch) -> None:
    """Before any machine is there; what came before it in the list is not blamed."""
    launched: list[sky.InstanceLaunching] = []

    def transform(image: Image, cluster: Cluster) -> Image:
        raise OSError("broken inside")

    plugins = [
        sky.Plugin.create("innocent").with_image_transform(lambda image, cluster: image),
        sky.Plugin.create("culprit").with_image_transform(transform),
    ]
    pool = sky.Compute(nodes=2, console="silent", plugins=plugins).on(sky.InstanceLaunching, launched.append)
    with pytest.raises(sky.PluginError, match="'culprit' failed in transform: OSError: broken inside") as caught, pool:
        raise AssertionError("the pool is open")
    assert (caught.value.plugin, caught.value.hook) == ("culprit", "transform")
    assert isinstance(caught.value.__cause__, OSError)
    assert launched == []
    assert watch.processes() == []


def test_plugin_that_raises_on_its_way_out(watch: Watch, tmp_path: Path) -> None:
    """The work is done, and all processes end all the same."""
    log = str(tmp_path / "log")

    @contextmanager
    def around(info: InstanceInfo) -> Iterator[None]:
        daemonise(log)
        yield
        raise OSError("broken inside")

    plugins = [
        sky.Plugin.create("one").with_around_process(around),
        sky.Plugin.create("two").with_around_app(around),
    ]
    with sky.Compute(nodes=2, console="silent", plugins=plugins) as pool:
        assert ok() @ pool == ["ok", "ok"]
        assert len(watch.processes()) >= 2 * 5
    assert watch.processes() == []
    assert alive(log) == []


@pytest.mark.parametrize("hook", ["around_process", "around_app"])
def test_plugin_that_exits_is_named_too(watch: Watch, hook: str) -> None:
    """`sys.exit` in a hook is a failure of the plugin."""

    def around(info: InstanceInfo) -> Any:
        sys.exit("no licence")

    plugin = around_named(sky.Plugin.create("culprit"), hook, around)
    with pytest.raises(sky.SkywardError, match="no licence") as caught:
        sky.Compute(console="silent", plugins=[plugin], max_provision_attempts=1).open()
    assert watch.processes() == []
    assert "culprit" in str(caught.value)


@pytest.mark.parametrize("hook", ["around_process", "around_app"])
def test_plugin_that_ends_its_process(watch: Watch, hook: str) -> None:
    """Nothing can tell who it was; its last words are in the error, and nothing is left."""

    def around(info: InstanceInfo) -> Any:
        os.write(2, b"these were my last words\n")
        os._exit(9)

    plugin = around_named(sky.Plugin.create("culprit"), hook, around)
    with pytest.raises(sky.ProvisionError, match=r"(?s)exit code 9.*these were my last words"):
        sky.Compute(console="silent", plugins=[plugin], max_provision_attempts=1).open()
    assert watch.processes() == []


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_start_that_fails_is_tried_again(watch: Watch, tmp_path: Path, failures: int) -> None:
    """As often as `max_provision_attempts` says; the error that is raised is the one that the last attempt met."""
    log = tmp_path / "log"

    @contextmanager
    def around(info: InstanceInfo) -> Iterator[None]:
        with log.open("a") as file:
            file.write("x")
        if log.stat().st_size <= failures:
            os.write(2, b"these were my last words\n")
            os._exit(9)
        yield

    errors: list[sky.Error] = []
    plugin = sky.Plugin.create("culprit").with_around_process(around)
    pool = sky.Compute(console="silent", plugins=[plugin], max_provision_attempts=3).on(sky.Error, errors.append)
    if failures < 3:
        with pool:
            assert ok() >> pool == "ok"
    else:
        with pytest.raises(sky.ProvisionError, match="these were my last words"):
            pool.open()
    assert [("these were my last words" in error.message) for error in errors] == [True] * failures
    assert log.stat().st_size == min(failures + 1, 3)
    assert watch.processes() == []


def test_plugin_that_raises_in_a_worker_that_stands_in(watch: Watch, tmp_path: Path) -> None:
    """The pool had been open: where it does not go on for ever, what runs next fails with the plugin's name."""
    first = tmp_path / "first"

    @contextmanager
    def around(info: InstanceInfo) -> Iterator[None]:
        if first.exists():
            raise OSError("broken inside")
        first.touch()
        yield

    plugin = sky.Plugin.create("culprit").with_around_process(around)
    with sky.Compute(console="silent", plugins=[plugin], max_replacement_attempts=2) as pool:
        with pytest.raises(sky.WorkerDiedError):
            sky.function(os._exit)(1) >> pool
        later: Future[str] = ok() > pool
        error = later.exception(timeout=20)
        assert isinstance(error, sky.SkywardError)
        assert "'culprit' failed in around_process" in str(error)
        assert "broken inside" in str(error)
    assert watch.processes() == []


def test_pool_can_be_opened_after_one_that_could_not(watch: Watch) -> None:
    """A plugin's failure leaves nothing in the client either."""
    bad = sky.Plugin.create("culprit").with_around_process(raises_at_once)
    for _ in range(2):
        with pytest.raises(sky.PluginError):
            sky.Compute(console="silent", plugins=[bad]).open()
    with sky.Compute(console="silent") as pool:
        assert ok() >> pool == "ok"
        assert watch.processes()
    assert watch.processes() == []


def alive(log: str) -> list[int]:
    """List which of the processes that were written down still run."""
    pids = {int(line) for line in Path(log).read_text().split()}
    assert pids
    return [pid for pid in pids if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state != b"Z"
