"""The program `sky`, as it is typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import skyward
from skyward.origin import install
from skyward.registry import EXTRAS
from tests.distributions import is_installed

pytestmark = pytest.mark.slow

SKY = Path(sys.executable).with_name("sky")
Sky = Callable[..., "subprocess.CompletedProcess[str]"]


def sky(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Type something, and give what comes of it."""
    return subprocess.run(
        [str(SKY), *words],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Give exit code, answer and complaint."""
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def third(tmp_path: Path) -> Sky:
    """Return a function that types something where a distribution with this module is installed."""

    def typed(text: str, *words: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "third_party_of_sky.py").write_text(
            "from skyward.hookspecs import Command, hookimpl\n" + textwrap.dedent(text)
        )
        facts = tmp_path / "third_party_of_sky-1.0.dist-info"
        facts.mkdir(exist_ok=True)
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-of-sky\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text("[skyward]\nthird = third_party_of_sky\n")
        return sky(*words, PYTHONPATH=str(tmp_path))

    return typed


# That the module has Skyward under a name of its own must not send the registry in circles.
COMMAND = """
import skyward as sky

def run(options):
    print("hello", options.name)
    if options.name == "bad":
        raise sky.ConfigError("It is bad.", hint="Be good.")
    if options.name == "lost":
        raise sky.NodeError("It is lost.")
    return 7

@hookimpl
def skyward_commands():
    return {"greet-you": Command(run, summary="Say hello.", arguments=lambda parser: parser.add_argument("name"))}
"""


def test_every_way_to_start_it() -> None:
    """Two names and the module do the same."""
    for command in ([SKY], [SKY.with_name("skyward")], [sys.executable, "-m", "skyward"]):
        for words in ("--version", "-V", "version"):
            printed = subprocess.run([*command, words], capture_output=True, text=True, check=True).stdout
            assert f"skyward-core {skyward.__version__}\n" == printed


def test_the_version_loads_next_to_nothing() -> None:
    """A user who asks for it waits for nothing else."""
    done = sky("--version", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "skyward.cli.main" in loaded
    assert set() == loaded & {"asyncio", "asyncssh", "attrs", "pluggy", "rich", "argparse", "skyward.registry"}


@pytest.mark.parametrize("words", [("providers",), ("help", "clean"), ("help",)])
def test_no_answer_loads_what_only_pools_need(words: tuple[str, ...]) -> None:
    """Neither what dials nor what draws."""
    done = sky(*words, PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "skyward.cli.main" in loaded
    assert "skyward.model.cli_command" in loaded
    assert set() == loaded & {"asyncssh", "rich", "skyward.engine"}


@pytest.mark.parametrize("words", [(), ("help",), ("--help",), ("-h",)])
def test_the_commands_are_listed(words: tuple[str, ...]) -> None:
    """Each with what it does."""
    code, answer, complaint = said(sky(*words))
    assert (0, "") == (code, complaint)
    listed = [" ".join(line.split()) for line in answer.splitlines()]
    assert "clean Empty Skyward's cache on hosts." in listed
    assert "providers List providers, plugins and storage, and what to type for more." in listed


@pytest.mark.parametrize("words", [("help", "clean"), ("clean", "--help"), ("clean", "-h")])
def test_a_command_is_explained(words: tuple[str, ...]) -> None:
    """With its arguments."""
    code, answer, complaint = said(sky(*words))
    assert (0, "") == (code, complaint)
    assert answer.startswith("usage: sky clean ")
    assert [] == [option for option in ("--user", "--key", "--port", "--jump", "HOST") if option not in answer]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["clena", "host"], "sky: sky has no command 'clena'. Did you mean 'clean'?\n"),
        (["help", "provider"], "sky: sky has no command 'provider'. Did you mean 'providers'?\n"),
        (["hlep"], "sky: sky has no command 'hlep'. Did you mean 'help'?\n"),
        (["xyzzy"], "sky: sky has no command 'xyzzy'. Type: sky help\n"),
        (["--verbose"], "sky: sky has no option '--verbose'. Type: sky help\n"),
        (["clean"], "sky: The following arguments are required: HOST. Type: sky help clean\n"),
        (["clean", "--port", "x", "h"], "sky: Argument --port: invalid int value: 'x'. Type: sky help clean\n"),
        (["ls", "--jsn"], "sky: Unrecognized arguments: --jsn. Did you mean '--json'? Type: sky help ls\n"),
        (["detached", "all"], "sky: Unrecognized arguments: all. Type: sky help detached\n"),
        (["clean", "gate:ssh"], "sky: hosts has 'gate:ssh', whose port 'ssh' is no number.\n"),
        (["clean", "a", "a"], "sky: hosts names 'a' twice.\n"),
        (["clean", "--jump", "a b", "c"], "sky: jump has 'a b', which names no host. Write user@host:port.\n"),
    ],
)
def test_what_is_typed_wrongly(words: list[str], complaint: str) -> None:
    """One line says what is right, apart from the answer."""
    assert (2, "", complaint) == said(sky(*words))


def test_providers_are_listed() -> None:
    """Those that are there with what they are, the others with what to type."""
    code, answer, complaint = said(sky("providers"))
    assert (0, "") == (code, complaint)
    assert "  sky.SSH           Use machines that one has already, over SSH.\n" in answer
    for name, extra in EXTRAS.items():
        line = next((line for line in answer.splitlines() if line.split()[:1] == [name]), "")
        wanted = not name.startswith("sky.integrations.")
        assert wanted == bool(line)
        if wanted:
            assert is_installed(extra) != line.endswith(f"not installed; type: {install(extra)}")


def test_lists_for_programs() -> None:
    """One JSON value on standard output, and nothing else."""
    for words, key in ((("help",), "commands"), (("providers",), "plugins"), (("version",), "skyward-core")):
        code, answer, complaint = said(sky(*words, "--json"))
        assert (0, "") == (code, complaint)
        assert key in json.loads(answer)
    listed = {each["name"]: each for each in json.loads(sky("providers", "--json").stdout)["providers"]}
    assert (True, None) == (listed["sky.Local"]["installed"], listed["sky.Local"]["install"])


def test_no_pool_is_detached_for_programs(tmp_path: Path) -> None:
    """An empty list is a list."""
    done = sky("detached", "--json", SKYWARD_STATE=str(tmp_path))
    assert (0, {"pools": []}, "") == (done.returncode, json.loads(done.stdout), done.stderr)


def test_a_reader_that_has_enough() -> None:
    """Nothing is said of it."""
    done = subprocess.run(
        ["sh", "-c", f"'{SKY}' providers | true"], capture_output=True, text=True, timeout=40, check=False
    )
    assert "" == done.stderr


def test_a_third_party_adds_a_command(third: Sky) -> None:
    """It is listed, explained, run and offered as core's own are; what it returns is the exit code."""
    assert ["greet-you Say hello."] == [
        " ".join(line.split()) for line in third(COMMAND, "help").stdout.splitlines() if "greet-you" in line
    ]
    assert "usage: sky greet-you [-h] name\n" in third(COMMAND, "help", "greet-you").stdout
    assert (7, "hello you\n", "") == said(third(COMMAND, "greet-you", "you"))
    assert "Did you mean 'greet-you'?" in third(COMMAND, "greetyou").stderr


def test_what_a_command_raises(third: Sky) -> None:
    """Errors of ours have no traceback; all others are mistakes of their author."""
    assert (2, "hello bad\n", "sky: It is bad. Be good.\n") == said(third(COMMAND, "greet-you", "bad"))
    assert (1, "hello lost\n", "sky: It is lost.\n") == said(third(COMMAND, "greet-you", "lost"))
    code, _, complaint = said(third(COMMAND.replace("return 7", "1 / 0"), "greet-you", "you"))
    assert 1 == code
    assert complaint.endswith("ZeroDivisionError: division by zero\n")


def test_a_third_party_that_cannot_be_imported(third: Sky) -> None:
    """It is named in one line if it brings a command, and everything else is listed."""
    assert said(third("import nowhere_to_be_found", "help"))[2] == ""
    code, answer, complaint = said(third("import nowhere_to_be_found, skyward_commands", "help"))
    assert 0 == code
    assert "  clean " in answer
    assert complaint.startswith("sky: The Skyward plugin 'third' is left out, because third_party_of_sky cannot be")
    assert 1 == complaint.count("\n")


def test_a_third_party_that_takes_our_name(third: Sky) -> None:
    """It is blamed where all are listed, and ours works on."""
    text = COMMAND.replace("greet-you", "clean")
    code, answer, complaint = said(third(text, "help"))
    assert (1, "") == (code, answer)
    assert "sky: Plugin 'third' failed in skyward_commands: 'clean' is registered by 'sky' already.\n" == complaint
    assert 0 == third(text, "help", "clean").returncode


def test_an_interrupted_command(third: Sky, tmp_path: Path) -> None:
    """It ends with the code of the signal, and without a traceback."""
    third("", "--version")
    module = tmp_path / "third_party_of_sky.py"
    module.write_text(
        textwrap.dedent("""
        import threading
        from skyward.hookspecs import Command, hookimpl

        def run(options):
            print("waits", flush=True)
            threading.Event().wait(30)

        @hookimpl
        def skyward_commands():
            return {"wait": Command(run, summary="Wait.")}
        """)
    )
    with subprocess.Popen(
        [str(SKY), "wait"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert "waits\n" == running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert ("", "sky: interrupted.\n") == running.communicate(timeout=20)
    assert 130 == running.returncode
