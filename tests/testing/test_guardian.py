"""Machines that cannot end their own bill are ended when their client dies; guardians go when all was given back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.seeds import some
from tests.testing.guarded import TTL, Client
from tests.waiting import until

pytestmark = pytest.mark.slow

Start = Callable[..., Client]

LEFT_OPEN = """
with pool() as opened:
    print("ready", flush=True)
    sky.function(sleep)() >> opened
"""


@pytest.fixture
def start(books: str, tmp_path: Path) -> Iterator[Start]:
    """Start client programs, and end what is left of them."""
    clients: list[Client] = []

    def start(program: str, **options: dict[str, str]) -> Client:
        clients.append(Client(books, tmp_path, program, **options))
        return clients[-1]

    yield start
    for client in clients:
        client.end()


def gone(client: Client, seconds: float = 40.0) -> None:
    """Wait until nothing of a dead client is left: machines, guardians, open lines of the journal."""
    until(lambda: not client.machines(), seconds)
    until(lambda: not client.guardians(), seconds)
    assert [] == client.open_launches()


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("pass", 0),
        ("raise SystemError('of the user')", 1),
        ("sys.exit(5)", 5),
        ("signal.raise_signal(signal.SIGINT)", -2),
    ],
)
def test_no_guardian_outlives_a_client_that_gave_everything_back(start: Start, inside: str, code: int) -> None:
    """It is gone before the client ends, and has written nothing."""
    client = start(f"with pool(nodes=2):\n    print('ready', flush=True)\n    time.sleep(0.1)\n    {inside}")
    client.says("ready")
    client.ends(code)
    assert ([], [], "", []) == (client.machines(), client.guardians(), client.log(), client.open_launches())


@pytest.mark.parametrize("ends", some("ends of a bill", ['"running"', "False"]))
def test_a_machine_that_never_runs_is_ended_when_its_client_was_killed(start: Start, ends: str) -> None:
    """Where machines end their own bill only once they run, only a guardian can end one that is stuck before that."""
    client = start(f"""
        cloud = Rehearsal(directory=BOOKS, ends_own_bill={ends}, faults=[NeverBoots(times=9)])
        with pool(cloud, on_event=die("InstanceLaunched")):
            pass
    """)
    client.ends(-signal.SIGKILL)
    assert 1 == len(client.machines())
    gone(client)
    assert "all its machines are gone" in client.log()


@pytest.mark.parametrize("number", some("signals", [signal.SIGINT, signal.SIGTERM]))
def test_signals_while_a_task_runs(start: Start, number: signal.Signals) -> None:
    """Ctrl-C, which reaches all of the terminal's processes, and SIGTERM unwind; nothing is left to the guardian."""
    client = start(LEFT_OPEN)
    client.says("ready")
    os.killpg(client.process.pid, number)
    client.ends({signal.SIGINT: -2, signal.SIGTERM: 143}[number])
    assert ([], [], "") == (client.machines(), client.guardians(), client.log())


def test_a_second_ctrl_c_leaves_the_rest_to_the_guardian(start: Start) -> None:
    """Or to nothing, if nothing is left."""
    client = start(LEFT_OPEN)
    client.says("ready")
    client.process.send_signal(signal.SIGINT)
    client.process.send_signal(signal.SIGINT)
    client.process.communicate(timeout=30)
    gone(client)


@pytest.mark.parametrize("event", some("moments of Ctrl-C", ["InfraCreated", "InstanceLaunched", "BootstrapStarting"]))
def test_ctrl_c_while_the_pool_is_opened(start: Start, event: str) -> None:
    """Before and after something was rented: all is given back, and the guardian is sent home."""
    client = start(f"""
        def interrupt(event):
            if type(event).__name__ == {event!r}:
                os.kill(CLIENT, signal.SIGINT)
        cloud = Rehearsal(directory=BOOKS, ends_own_bill=False, faults=[SlowBoot(seconds=1)])
        with pool(cloud, on_event=interrupt):
            time.sleep(30)
    """)
    client.ends(-2)
    assert ([], [], "", []) == (client.machines(), client.guardians(), client.log(), client.open_launches())


def test_a_pool_that_cannot_be_opened_needs_no_guardian(start: Start) -> None:
    """Credentials are refused before anything is set up; the guardian that was on its way is gone."""
    client = start("""
        class Refusing(Rehearsal):
            @hookimpl
            async def skyward_preflight(self):
                raise sky.CredentialsError("This key is none.")

        with pool(Refusing(directory=BOOKS, ends_own_bill=False)):
            pass
    """)
    assert "This key is none." in client.ends(1)
    assert ([], "") == (client.guardians(), client.log())


def test_a_launch_that_nobody_answers_leaves_the_guardian_on_watch(start: Start) -> None:
    """What it rents appears when the pool was given up; the guardian ends it, and does not wait for `ttl`."""
    client = start("""
        class Late(Rehearsal):
            @hookimpl
            async def skyward_launch(self, request):
                if not os.fork():
                    # The cloud makes the machine after the client has given up.
                    while os.getppid() == CLIENT:
                        time.sleep(0.02)
                    self._cloud.rent(request)
                    os._exit(0)
                raise sky.TransportError("The connection broke.")

        import skyward.engine.instances.launch_requests
        skyward.engine.instances.launch_requests.LOOKS = (0.1,)
        skyward.engine.guardian.guardian_client.APPEARING = 3.0
        with pool(Late(directory=BOOKS, ends_own_bill=False), ttl=600, max_provision_attempts=1):
            pass
    """)
    assert "The connection broke." in client.ends(1)
    until(client.ended)
    gone(client)
    assert "its machines are ended now" in client.log()


MOMENTS = [
    ("InfraCreated", "[]"),
    ("InstanceLaunching", "[SlowApi(seconds=0.2)]"),
    ("InstanceLaunched", "[SlowBoot(seconds=5)]"),
    ("BootstrapStarting", "[]"),
    ("TaskStarted", "[]"),
    ("ShutdownRequested", "[]"),
    ("InstanceDestroyed", "[]"),
]


@pytest.mark.parametrize(("event", "faults"), some("moments of a client's end", MOMENTS))
def test_a_client_that_is_killed(start: Start, event: str, faults: str) -> None:
    """At launch, boot, bootstrap, task and exit: what it had is ended, and not before `ttl`."""
    client = start(f"""
        cloud = Rehearsal(directory=BOOKS, ends_own_bill=False, faults={faults})
        with pool(cloud, nodes=2, on_event=die({event!r})) as opened:
            sky.function(sleep)() > opened if {event!r} == "TaskStarted" else None
            time.sleep(30) if {event!r} == "TaskStarted" else None
    """)
    client.ends(-9)
    died, left = time.time(), client.machines()
    gone(client)
    assert not left or max(client.ended()) - died > TTL - 0.5


def test_a_machine_whose_launch_was_not_answered(start: Start) -> None:
    """The client dies while the answer is on its way; the provider is a class of its own program."""
    client = start("""
        class Deadly(Rehearsal):
            @hookimpl
            async def skyward_launch(self, request):
                await super().skyward_launch(request)
                os.kill(os.getpid(), signal.SIGKILL)

        with pool(Deadly(directory=BOOKS, ends_own_bill=False)):
            pass
    """)
    client.ends(-9)
    assert 1 == len(client.machines())
    gone(client)


def test_a_provider_that_fails_is_asked_again(start: Start) -> None:
    """Twice it cannot end machines; the log says so, and what came of it."""
    client = start("""
        cloud = Rehearsal(directory=BOOKS, ends_own_bill=False, faults=[TerminateFails(times=2)])
        with pool(cloud, nodes=2, on_event=die("ClusterReady")):
            time.sleep(30)
    """)
    client.ends(-9)
    gone(client)
    lines = [line.split(": ", 1)[1] for line in client.log().splitlines()]
    assert f"its pool was left with process {client.process.pid}; its machines are ended in {TTL} s" == lines[0]
    assert lines[1].startswith(
        "its machines could not be ended, which is tried again: The rehearsal cloud answered 500"
    )
    assert lines[2].startswith("ended m-")
    assert "all its machines are gone" == lines[3]


def test_what_a_client_cannot_end_its_guardian_ends(start: Start) -> None:
    """Also when the client has ended, at once and without waiting for `ttl`; the client's error says who does it."""
    client = start("""
        class Stubborn(Rehearsal):
            @hookimpl
            async def skyward_terminate(self, cluster, ids):
                if os.getpid() == CLIENT:
                    raise sky.TransportError("The connection broke.")
                await super().skyward_terminate(cluster, ids)

        with pool(Stubborn(directory=BOOKS, ends_own_bill=False), ttl=600, shutdown_timeout=1):
            pass
    """)
    said = client.ends(1)
    assert "LeftBehindError: Pool 'pool' could not end all it had at rehearsal" in said
    assert "The connection broke. Guardian (process " in said
    gone(client)
    assert "are ended now" in client.log()


SPREAD = """
class Closing(Rehearsal):
    open = True

    @hookimpl
    async def skyward_launch(self, request):
        if not Closing.open:
            raise sky.CapacityError("Sold out.")
        return await super().skyward_launch(request)

home = Closing(directory=BOOKS, ends_own_bill=False)
with pool([home, Rehearsal(directory=BOOKS, ends_own_bill=False)], nodes=2, selection="first") as opened:
    Closing.open = False
    home.preempt(home.machines()[0].id)
    while opened.current_nodes() < 2 or len({machine.tags.pool_id for machine in home.machines()}) < 2:
        time.sleep(0.02)
    print("ready", flush=True)
    wait()
"""


def test_a_pool_of_two_clouds_has_two_guardians(start: Start) -> None:
    """Each ends the machines of its own, when the client is dead."""
    client = start(SPREAD)
    client.says("ready")
    assert 2 == len(client.guardians())
    client.process.kill()
    client.ends(-9)
    assert 2 == len(client.machines())
    gone(client)
    assert 2 == client.log().count("all its machines are gone")


@pytest.mark.everything
def test_both_guardians_of_a_pool_go_when_it_was_given_back(start: Start) -> None:
    """They have written nothing."""
    client = start(SPREAD)
    client.says("ready")
    client.go()
    client.ends(0)
    assert ([], [], "", []) == (client.machines(), client.guardians(), client.log(), client.open_launches())


def test_it_says_who_guards_and_what_remains(start: Start) -> None:
    """One line at the start, with the guardian's process id."""
    client = start("import logging; logging.basicConfig()\nwith pool():\n    pass")
    line = client.says("guardian")
    assert "Machines of pool 'pool' at rehearsal cannot end their own bill: guardian (process " in line
    assert f") ends them {TTL} s after this process dies. If this computer dies too" in line
    assert "sky down --expired" in line
    assert "guardian" not in client.ends(0)


SECRET = "sk-the-key-of-the-account"


def test_no_secret_can_be_read_of_a_guardian(start: Start) -> None:
    """Neither the provider's key nor the client's variables are in its command line, environment or any file."""
    client = start(
        f"""
        from attrs import frozen, field

        @frozen(kw_only=True)
        class Keyed(Rehearsal):
            key: str = field(repr=False)

            @hookimpl
            async def skyward_terminate(self, cluster, ids):
                assert self.key == os.environ["CLOUD_KEY"] == {SECRET[::-1]!r}[::-1]
                await super().skyward_terminate(cluster, ids)

        with pool(Keyed(directory=BOOKS, ends_own_bill=False, key=os.environ["CLOUD_KEY"])):
            print("ready", flush=True)
            time.sleep(30)
        """,
        env={"CLOUD_KEY": SECRET},
    )
    client.says("ready")
    [guardian] = client.guardians()
    proc = Path(f"/proc/{guardian}")
    assert b"skyward.engine.guardian.guardian_process" in (proc / "cmdline").read_bytes()
    assert SECRET.encode() not in (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
    opened = [Path(os.readlink(link)) for link in (proc / "fd").iterdir()]
    files = [path for path in (*opened, *client.home.rglob("*"), *Path(client.books).rglob("*")) if path.is_file()]
    assert files
    client.process.kill()
    gone(client)
    files += [path for path in client.home.rglob("*") if path.is_file()]
    assert [] == [path for path in files if path.exists() and SECRET.encode() in path.read_bytes()]


@pytest.mark.everything
def test_two_pools_have_a_guardian_each(start: Start) -> None:
    """One that is left takes its own along; the other's ends what is left when the client is killed."""
    client = start("""
        with pool() as staying:
            with pool() as going:
                print("both", flush=True)
                wait()
            print("one", flush=True)
            sky.function(sleep)() >> staying
    """)
    client.says("both")
    assert 2 == len(client.guardians())
    client.go()
    client.says("one")
    assert (1, 1) == (len(client.guardians()), len(client.machines()))
    client.process.kill()
    gone(client)


def test_two_pools_of_a_client_that_is_killed(start: Start) -> None:
    """Both are ended."""
    client = start("""
        with pool(), pool(nodes=2):
            print("ready", flush=True)
            time.sleep(30)
    """)
    client.says("ready")
    client.process.kill()
    assert 3 == len(client.machines())
    gone(client)
    assert 2 == client.log().count("all its machines are gone")


def test_a_guardian_that_is_killed_is_followed_by_another(start: Start) -> None:
    """The pool works on and says so; the new one knows what there is."""
    client = start(LEFT_OPEN)
    client.says("ready")
    [first] = client.guardians()
    os.kill(first, signal.SIGKILL)
    assert f"told guardian (process {first}) died; machines of pool 'pool' at rehearsal get another" in client.says(
        "told"
    )
    until(lambda: set(client.guardians()) - {first})
    client.process.kill()
    gone(client)
    assert "all its machines are gone" in client.log()


def test_without_a_guardian_nothing_more_is_rented(start: Start) -> None:
    """After several that died soon; what runs goes on, and the message says what to do."""
    client = start("""
        skyward.engine.guardian.guardian_client.STARTS = 1
        with pool(nodes=(1, 2), provision_retry_delay=0.1, max_provision_attempts=1) as opened:
            print("ready", flush=True)
            wait()
            opened.resize(2)
            assert 0 == sky.function(len)("") >> opened
            sky.function(sleep)() >> opened
    """)
    client.says("ready")
    [guardian] = client.guardians()
    [machine] = client.machines()
    os.kill(guardian, signal.SIGKILL)
    line = client.says("told")
    assert "have no guardian any more, and so no more are rented" in line
    assert "If this process dies, type: sky down" in line
    client.go()
    client.says("have no guardian any more")
    assert [machine] == client.machines()
    client.process.send_signal(signal.SIGINT)
    client.ends(-2)
    assert ([], []) == (client.machines(), client.guardians())


def test_the_terminal_that_goes_away_takes_no_guardian_along(start: Start) -> None:
    """SIGHUP kills the client and all of its group; the guardian has a session of its own."""
    client = start(LEFT_OPEN)
    client.says("ready")
    [guardian] = client.guardians()
    assert (guardian, guardian) == (os.getsid(guardian), os.getpgid(guardian))
    os.killpg(client.process.pid, signal.SIGHUP)
    client.ends(-1)
    gone(client)


def test_a_computer_that_is_shut_down_hurries_its_guardians(start: Start) -> None:
    """SIGTERM does not end a guardian: it ends the machines of its dead client without waiting for `ttl`."""
    client = start(LEFT_OPEN.replace("pool()", "pool(ttl=600)"))
    client.says("ready")
    [guardian] = client.guardians()
    client.process.kill()
    client.process.wait()
    assert 1 == len(client.machines())
    os.kill(guardian, signal.SIGTERM)
    gone(client)


def test_a_child_of_the_client_that_lives_on_does_not_deceive_the_guardian(start: Start) -> None:
    """A forked process holds the client's end of the socket, so that it stays open."""
    client = start("""
        with pool():
            child = os.fork()
            if not child:
                time.sleep(300)
                os._exit(0)
            os.kill(CLIENT, signal.SIGKILL)
    """)
    client.process.wait(30)
    gone(client)
    os.killpg(client.process.pid, 0)


@pytest.mark.parametrize("options", ["ends_own_bill=True", "ends_own_bill=False"])
def test_who_has_none(start: Start, options: str) -> None:
    """Pools whose machines end themselves, and those whose `ttl` is 0."""
    ttl = 0 if "False" in options else TTL
    client = start(f"""
        with pool(Rehearsal(directory=BOOKS, {options}), ttl={ttl}):
            print("ready", flush=True)
            time.sleep(0.5)
    """)
    client.says("ready")
    assert [] == client.guardians()
    client.ends(0)


@pytest.mark.parametrize(
    ("cloud", "says"),
    [
        ("Held(directory=BOOKS, ends_own_bill=False, held=Lock())", "cannot be handed to the guardian"),
        ("Odd(directory=BOOKS, ends_own_bill=False)", "what skyward_open returned cannot be pickled"),
    ],
)
def test_what_cannot_be_handed_over_is_refused_before_anything_is_rented(start: Start, cloud: str, says: str) -> None:
    """A provider or infra that cannot be pickled; the message says what to do."""
    client = start(f"""
        from attrs import frozen
        from threading import Lock
        from typing import Any

        @frozen(kw_only=True)
        class Held(Rehearsal):
            held: Any = None

        class Odd(Rehearsal):
            @hookimpl
            async def skyward_open(self, cluster):
                return Lock()

        with pool({cloud}):
            pass
    """)
    out = client.ends(1)
    assert says in out
    assert "With ttl=0 a pool is opened without a guardian" in out
    assert ([], [], []) == (client.machines(), client.ended(), client.guardians())
