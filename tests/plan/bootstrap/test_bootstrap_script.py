"""The script that makes a machine ready: what is written, and what happens when a shell runs it."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.model.spec.image import DEFAULT_IMAGE, Image, PipIndex
from skyward.model.spec.op import AptInstall, Op, PipInstall, Shell
from skyward.plan.bootstrap.bootstrap_script import Ground, preview, render
from skyward.plan.bootstrap.uv_release import ARCHIVES, REQUIREMENT, VERSION
from tests.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="nodes run Linux")

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
TOKEN = "k3y"
MARK = f"test-script-{os.getpid()}"
NUMBERS = itertools.count()
SHOWN = "uv pip install --python $ENVIRONMENT/bin/python"
INSTALL = '"$UV" pip install --python "$ENVIRONMENT"/bin/python'

AGENT = """
import os, socket, subprocess, sys
here = sys.argv[1]
started = subprocess.Popen(["sleep", "600"], start_new_session=True)
with open(here + "/child.pid", "w") as file:
    file.write(str(started.pid))
sock = socket.socket(socket.AF_UNIX)
os.chdir(here)
sock.bind("agent.sock")
sock.listen()
sock.accept()
"""
"""Stands in for an agent: has a child in another session, and listens."""


class Host:
    """
    A home directory as a machine, on which scripts are run.

    Args:
        home: Its home directory.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.node = f"{MARK}-{next(NUMBERS)}"
        self.cache = home / ".cache" / "skyward"
        self.directory = self.cache / "nodes" / self.node
        # What may run is only what is named here, so that the machine's own uv or sudo are never met.
        self.bin = home / "bin"
        self.bin.mkdir(parents=True)
        self.path = f"{self.bin}:/usr/bin:/bin"
        self.offer(f"python{MINOR}", f'exec "{sys.executable}" "$@"')
        self.marks = {self.node}

    def offer(self, name: str, text: str) -> None:
        """Put a command on the path."""
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def script(
        self,
        image: Image = DEFAULT_IMAGE,
        *ops: Op,
        node: str | None = None,
        agent: tuple[str, ...] | None = None,
        ttl: float = 0,
        life: float | None = None,
        end: tuple[str, ...] = (),
    ) -> Path:
        """Write a script and give its file."""
        node = node or self.node
        self.marks.add(node)
        ground = Ground(node=f"$SKYWARD_HOME/nodes/{node}", runtime="00", token=TOKEN)
        text = render(image, ops, ground, agent=agent or self.agent(), ttl=ttl, life=life, end=end)
        file = self.home / f"{node}.sh"
        file.write_text(text)
        return file

    def agent(self) -> tuple[str, ...]:
        """Give the command line of the agent that these tests start."""
        (self.home / "agent.py").write_text(AGENT)
        return ("$PYTHON", str(self.home / "agent.py"), "$NODE")

    def start(self, script: Path) -> subprocess.Popen[str]:
        """Start a script."""
        kept = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
        return subprocess.Popen(
            ["sh", str(script)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.home,
            env={**kept, "HOME": str(self.home), "PATH": self.path},
            start_new_session=True,
        )

    def run(self, script: Path) -> tuple[int, list[str]]:
        """Run a script, and give its code and its lines."""
        process = self.start(script)
        out, _ = process.communicate(timeout=50)
        return process.returncode, out.splitlines()

    def pids(self) -> list[int]:
        """Give the processes that belong to this host's nodes."""
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/environ")
            if {f"SKYWARD_NODE={mark}" for mark in self.marks} & set(_read(path).split("\0"))
        ]

    def close(self) -> None:
        """End what was started here and is still running, by its number."""
        for pidfile in self.cache.glob("nodes/*/watchdog.pid"):
            if str(self.cache) in _read(Path("/proc", _read(pidfile).strip(), "cmdline")):
                os.kill(int(_read(pidfile)), signal.SIGKILL)
        for pid in self.pids():
            _kill(pid)
        until(lambda: not self.pids())


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def marked(lines: list[str]) -> list[str]:
    """Give what the script's own lines say, without seconds."""
    own = [line.removeprefix(f"@@{TOKEN} ") for line in lines if line.startswith(f"@@{TOKEN} ")]
    return [re.sub(r"(completed \w+) \d+\.\d\d$", r"\1", line) for line in own]


def phases(lines: list[str]) -> list[str]:
    """Give the phases that were completed."""
    return [line.split()[-1] for line in marked(lines) if line.startswith("phase completed ")]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host on which nothing is left running."""
    host = Host(tmp_path / "it's home")
    yield host
    host.close()


def write(image: Image = DEFAULT_IMAGE, *ops: Op, **more: object) -> str:
    """Write a script for a fixed place."""
    given = {"agent": ["$PYTHON", "-m", "a"], "ttl": 0, "life": None, **more}
    return render(image, ops, Ground(node="$SKYWARD_HOME/nodes/a-0", runtime="00", token=TOKEN), **given)  # type: ignore[arg-type]


def steps(script: str) -> list[str]:
    """Give the lines that come after all functions, without those that are in every script."""
    rest = script.split("UV_EXTRA_INDEX_URL:-", 1)[1].splitlines()[1:]
    return [line.strip() for line in rest if line.strip()]


def test_nothing_asked_is_only_python_and_the_agent() -> None:
    """Whatever has nothing to do is not there."""
    assert steps(write()) == [
        'export SKYWARD_NODE="$MARK"',
        f"WANTED={MINOR}",
        f"MINOR={MINOR}",
        "find_python",
        """start_agent '$PYTHON -m a' "$PYTHON" "-m" "a\"""",
        'say "done ${ENVIRONMENT:-$PYTHON}${ENVIRONMENT:+/bin/python}"',
    ]


@pytest.mark.parametrize(
    ("image", "ops", "line"),
    [
        (Image(apt=["git"]), [AptInstall(["jq", "git"])], "install_packages git jq"),
        (Image(python="3.12.4"), [], "WANTED=3.12.4"),
        (
            Image(pip=["six"]),
            [],
            f"""run '{SHOWN} six' {INSTALL} six""",
        ),
        (
            Image(pip=["six"], pip_indexes=[PipIndex("https://me:pw@x.example/a", ["six"])]),
            [],
            f"run 'UV_INDEX=https://***@x.example/a {SHOWN} six' {INSTALL} six",
        ),
        (Image(), [Shell("echo {uv} $HOME")], "user 'echo {uv} $HOME' sh -ec 'echo {uv} $HOME'"),
        (Image(), [Shell("echo a\necho b", scope="environment")], r"user 'echo a\necho b' sh -ec 'echo a"),
        (
            Image(),
            [PipInstall(["attrs>=23"])],
            f"run '{SHOWN} attrs>=23' {INSTALL} 'attrs>=23'",
        ),
        (Image(shell_vars={"CORES": "nproc"}), [], "shell_var CORES nproc nproc"),
    ],
)
def test_what_is_asked_for_is_written(image: Image, ops: list[Op], line: str) -> None:
    """Each wish becomes a line, quoted."""
    assert line in steps(write(image, *ops))


def test_passwords_are_never_told() -> None:
    """What the script says of a command has no password, whichever command it is."""
    url = "https://me:hunter2@x.example/simple"
    image = Image(pip=["six"], pip_extra_index_url=url, shell_vars={"A": f"echo {url}"})
    script = write(image, Shell(f"curl {url}"), PipInstall(["a"], index_url=url), agent=["a", url])
    told = [
        re.split(r"""(?<=') """, line)[0] for line in steps(script) if line.startswith(("run", "user", "shell_var"))
    ]
    assert sum("***@x.example" in line for line in told) == 4
    assert not [line for line in told if "hunter2" in line]


def test_a_command_line_of_uv_has_no_password(host: Host) -> None:
    """Nor have those of what runs on the way; it gets them by its environment and its input."""
    seen = 'for each in /proc/[0-9]*; do tr "\\0" " " <$each/cmdline; echo; done >>seen 2>/dev/null'
    read = 'case "$*" in *"-r -"*) cat >>given ;; esac; echo "${UV_INDEX:-none} ${UV_EXTRA_INDEX_URL:-none}" >>given'
    made = 'case "$1" in venv) for last; do :; done; mkdir -p "$last/bin" && cp "$0" "$last/bin/python" ;; esac'
    host.offer("uv", f"{seen}\n{made}\n{read}")
    one, other = "https://me:pass1word@x.example/a", "https://me:p@ss2word@x.example/b"
    image = Image(
        pip=["six", "attrs", f"own @ {other}/own.whl"],
        pip_indexes=[PipIndex(one, ["six"])],
        pip_extra_index_url=other,
        env={"UV_INDEX": "theirs"},
    )
    code, lines = host.run(host.script(image, PipInstall(["b"], index_url=one)))
    assert code == 0, lines
    given = (host.home / "given").read_text().splitlines()
    assert [f"{one} {other}", f"own @ {other}/own.whl", f"theirs {other}", f"{one} none"] == given[-4:]
    assert "pip install" in (host.home / "seen").read_text()
    for text in ((host.home / "seen").read_text(), "\n".join(lines)):
        assert not re.search("pass1word|ss2word", text)


def test_the_environment_is_named_by_what_is_in_it() -> None:
    """Steps on the machine make no difference to it, those in the environment do."""
    image = Image(pip=["six"])

    def key(*ops: Op) -> str:
        return "".join(re.findall(r"environments/(py[^\"]+)\"", write(image, *ops)))

    assert key() == key(Shell("true")) == f"py{MINOR}-{image.content_hash()}"
    assert key(PipInstall(["a"])) != key(PipInstall(["b"])) != key()
    assert key(PipInstall(["a"])).startswith(key() + "-")


def test_the_preview_can_be_read_by_a_shell() -> None:
    """It is what runs, with fixed names."""
    text = preview(Image(pip=["six"], apt=["git"], shell_vars={"A": "nproc"}), ttl=600)
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    assert '"$SKYWARD_HOME/nodes/preview"' in text
    assert "write_watchdog" in text


@pytest.mark.parametrize(
    ("ttl", "life", "looks"), [(600, None, "5"), (8, None, "2"), (1, None, "1"), (0, 12, "3"), (0.5, 9000, "1")]
)
def test_the_watchdog_looks_often_enough(ttl: float, life: float | None, looks: str) -> None:
    """Four times in its time, but no more than once a second."""
    assert f" PAUSE={looks} " in write(ttl=ttl, life=life)


def test_a_command_cannot_end_the_watchdogs_text() -> None:
    """Whatever is in the words of the command that ends the machine."""
    assert "<<'WATCHDOG_'" in write(ttl=1, end=["echo", "\nWATCHDOG\ntouch pwned"])


def test_nothing_asked_is_done_with_this_python(host: Host) -> None:
    """The script ends by naming an interpreter of this minor version."""
    code, lines = host.run(host.script())
    assert code == 0, lines
    assert phases(lines) == ["python", "agent"]
    word, python = marked(lines)[-1].split(" ", 1)
    assert word == "done"
    told = subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, check=True)
    assert told.stdout.decode().strip() == str(sys.version_info[:2])
    assert host.directory.stat().st_mode & 0o777 == 0o700
    assert (host.directory / "agent.sock").is_socket()


def test_a_second_run_leaves_the_agent_as_it_is(host: Host) -> None:
    """The agent that runs stays the agent."""
    script = host.script()
    assert host.run(script)[0] == 0
    before = (host.directory / "agent.pid").read_text()
    code, lines = host.run(script)
    assert code == 0
    assert phases(lines) == ["python"]
    assert before == (host.directory / "agent.pid").read_text()


def test_an_agent_that_has_died_is_started_again(host: Host) -> None:
    """The socket that it left is no sign of life."""
    script = host.script()
    assert host.run(script)[0] == 0
    before = int((host.directory / "agent.pid").read_text())
    _kill(before)
    until(lambda: before not in host.pids())
    code, lines = host.run(script)
    assert (code, phases(lines)) == (0, ["python", "agent"])
    assert before != int((host.directory / "agent.pid").read_text())


def test_the_agent_has_its_place_and_mark(host: Host) -> None:
    """It finds our side first on its path, is at the root, and carries the node's name."""
    assert host.run(host.script(Image(env={"NODE": "theirs", "PYTHONPATH": "/theirs"})))[0] == 0
    pid = (host.directory / "agent.pid").read_text().strip()
    env = dict(item.partition("=")[::2] for item in _read(Path("/proc", pid, "environ")).split("\0"))
    assert env["PYTHONPATH"] == str(host.cache / "runtime" / "00")
    assert (env["SKYWARD_NODE"], env["NODE"]) == (host.node, "theirs")
    assert os.getsid(int(pid)) == int(pid)
    # The agent has gone elsewhere since; what it started first has not.
    child = (host.directory / "child.pid").read_text()
    assert os.readlink(f"/proc/{child}/cwd") == "/"


def test_an_agent_that_does_not_start_is_told_with_its_last_lines(host: Host) -> None:
    """At once, and not after thirty seconds."""
    code, lines = host.run(host.script(agent=("$PYTHON", "-c", "import sys; sys.exit('no module named so')")))
    assert code == 1
    assert marked(lines)[-1] == "failed agent 1"
    assert "no module named so" in lines
    assert "skyward: the agent ended as soon as it was started" in lines


def test_a_step_that_fails_fails_the_phase(host: Host) -> None:
    """With its code, after what it said, and on a line of its own."""
    code, lines = host.run(host.script(Image(), Shell("printf half; exit 7"), Shell("touch never")))
    assert code == 7
    assert marked(lines)[-2:] == [r"command printf half; exit 7", "failed plugins 7"]
    assert "half" in lines
    assert not (host.home / "never").exists()


def test_hostile_text_stays_text(host: Host) -> None:
    """Whatever is in variables and commands, nothing but what was asked runs."""
    hostile = ["'; touch pwned", "$(touch pwned)", "`touch pwned`", "two\nlines\n", '"; touch pwned; "', "\\", "$HOME"]
    names = [f"V{number}" for number in range(len(hostile))]
    image = Image(env=dict(zip(names, hostile, strict=True)), shell_vars={"COPY": 'printf "%s" "$V0"'})
    keep = "; ".join(f'printf "%s\\0" "${name}" >>seen' for name in names)
    script = host.script(image, Shell(f"rm -f seen; {keep}"), agent=(*host.agent(), *hostile[:6]))
    code, lines = host.run(script)
    assert code == 0, lines
    assert (host.home / "seen").read_bytes().decode().split("\0")[:-1] == hostile
    assert (host.directory / "shell_vars").read_bytes() == f"COPY={hostile[0]}\0".encode()
    argv = _read(Path("/proc", (host.directory / "agent.pid").read_text().strip(), "cmdline")).split("\0")
    assert argv[3:-1] == hostile[:6]
    assert not list(host.home.rglob("pwned"))
    assert not Path("/pwned").exists()


def test_variables_with_names_that_a_shell_needs(host: Host) -> None:
    """The script goes its way whatever the image's variables are called, and commands see them."""
    names = "HOME IFS PATH PYTHON NODE UV ENVIRONMENT SKYWARD_HOME MARK TOKEN PHASE UID OPTIND PS4 UMASK BREAK".split()
    seen = host.home / "seen"
    command = f'echo "$HOME $PYTHON $NODE $MARK $TOKEN $PHASE" >"{seen}"'
    code, lines = host.run(host.script(Image(env=dict.fromkeys(names, "x")), Shell(command)))
    assert code == 0, lines
    assert phases(lines) == ["python", "plugins", "agent"]
    assert seen.read_text() == "x x x x x x\n"
    assert (host.directory / "agent.sock").is_socket()


def test_what_a_shell_works_out_is_kept(host: Host) -> None:
    """Each variable's text is what its command prints; a command that fails ends the script."""
    image = Image(env={"A": "1"}, shell_vars={"SUM": 'echo "$((A + 1))"', "LINES": "printf 'a\\nb'", "NONE": "true"})
    code, lines = host.run(host.script(image))
    assert code == 0, lines
    file = host.directory / "shell_vars"
    assert file.read_bytes() == b"SUM=2\0LINES=a\nb\0NONE=\0"
    assert file.stat().st_mode & 0o777 == 0o600
    code, lines = host.run(host.script(Image(shell_vars={"BAD": "exit 3"})))
    assert (code, marked(lines)[-1]) == (3, "failed shell_vars 3")
    assert file.exists()


def environment(host: Host) -> None:
    """Give a host a uv that makes environments of links and notes what it is asked."""
    host.offer(
        "uv",
        f"""
        case $1 in --version) exit 0 ;; esac
        echo "$*" >>"{host.home}/asked"
        if [ "$1" = venv ]; then
          for there; do :; done
          mkdir "$there" || exit 2
          mkdir "$there/bin" && ln -s "{sys.executable}" "$there/bin/python"
        fi
        [ ! -e "{host.home}/broken" ] || exit 5
        """,
    )


def asked(host: Host) -> list[str]:
    """Give what uv was asked for."""
    return [line.split()[0] for line in _read(host.home / "asked").splitlines()]


def test_an_environment_is_made_once(host: Host) -> None:
    """The second run, and the second node, find it; what belongs to the machine runs each time."""
    environment(host)
    ops = (Shell("echo e >>ran", scope="environment"), PipInstall(["a"]), Shell("echo m >>ran"))
    code, lines = host.run(host.script(Image(pip=["six"]), *ops))
    assert code == 0, lines
    assert phases(lines) == ["python", "uv", "venv", "deps", "plugins", "agent"]
    assert marked(lines)[-1].startswith(f"done {host.cache}/environments/py{MINOR}-")
    code, lines = host.run(host.script(Image(pip=["six"]), *ops, node=f"{host.node}-other"))
    assert (code, phases(lines)) == (0, ["python", "plugins", "agent"])
    assert asked(host) == ["venv", "pip", "pip"]
    assert (host.home / "ran").read_text().split() == ["e", "m", "m"]


def test_uv_is_told_what_pip_is_told(host: Host) -> None:
    """Links, index and certificates of pip's are uv's too, unless it has its own."""
    environment(host)
    text = (host.bin / "uv").read_text()
    host.offer("uv", f'{text}\necho "$UV_FIND_LINKS $UV_DEFAULT_INDEX $UV_EXTRA_INDEX_URL $SSL_CERT_FILE" >told')
    env = {"PIP_FIND_LINKS": "/l", "PIP_INDEX_URL": "i", "PIP_EXTRA_INDEX_URL": "e", "PIP_CERT": "c"}
    code, lines = host.run(host.script(Image(pip=["six"], env=env)))
    assert code == 0, lines
    assert (host.home / "told").read_text() == "/l i e c\n"
    host.run(host.script(Image(pip=["attrs"], env={**env, "UV_FIND_LINKS": "/own", "UV_INDEX_URL": "own"})))
    assert (host.home / "told").read_text() == "/own own e c\n"


def no_pip(host: Host) -> None:
    """Take uv from a host, and pip from its Python."""
    environment(host)
    (host.bin / "uv").rename(host.home / "uv")
    # It gives itself as the interpreter, so that pip is asked for here.
    here = f'*sys.executable*) printf "%s\\n" {MINOR}.0 "$0"; exit ;;'
    host.offer(f"python{MINOR}", f'case "$*" in *pip*) exit 1 ;; {here} esac\nexec "{sys.executable}" "$@"')


def serve(host: Host, archive: Path) -> None:
    """Have curl bring an archive, whatever it is asked for."""
    host.offer(
        "curl", f'for url; do :; done; echo "$url" >asked_for; while [ "$1" != -o ]; do shift; done; cp {archive} "$2"'
    )


def test_uv_is_fetched_where_there_is_no_pip(host: Host, tmp_path: Path) -> None:
    """By curl, into the cache: one release, whose hash is known."""
    no_pip(host)
    name = f"uv-{os.uname().machine}-unknown-linux-musl"
    (tmp_path / name).mkdir()
    shutil.copy2(host.home / "uv", tmp_path / name / "uv")
    archive = tmp_path / "uv.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path, name], check=True)
    serve(host, archive)
    script = host.script(Image(pip=["six"]))
    known = ARCHIVES[os.uname().machine]
    script.write_text(script.read_text().replace(known, hashlib.sha256(archive.read_bytes()).hexdigest()))
    code, lines = host.run(script)
    assert code == 0, lines
    assert os.access(host.cache / "tools" / "bin" / "uv", os.X_OK)
    url = f"https://github.com/astral-sh/uv/releases/download/{VERSION}/{name}.tar.gz\n"
    assert url == (host.home / "asked_for").read_text()


def test_what_is_not_the_uv_that_is_known_is_not_run(host: Host, tmp_path: Path) -> None:
    """One line says so; nothing of it stays."""
    no_pip(host)
    (tmp_path / "other.tar.gz").write_bytes(b"no archive of theirs")
    serve(host, tmp_path / "other.tar.gz")
    code, lines = host.run(host.script(Image(pip=["six"])))
    assert (code, marked(lines)[-1]) == (1, "failed uv 1")
    assert [True, True] == [
        f"is not uv {VERSION}: its SHA-256 is another" in each or "uv cannot be had" in each
        for each in lines
        if each.startswith("skyward: ")
    ]
    assert not list((host.cache / "tools").glob("*.gz"))


def test_nothing_that_brings_uv(host: Host) -> None:
    """One line says so."""
    no_pip(host)
    host.offer("curl", "exit 6")
    code, lines = host.run(host.script(Image(pip=["six"])))
    assert (code, marked(lines)[-1]) == (1, "failed uv 1")
    assert ["skyward: uv cannot be had"] == [line[:25] for line in lines if line.startswith("skyward: ")]


def test_pip_takes_the_uv_that_is_known(host: Host) -> None:
    """By version and hashes, so that no index can give another."""
    no_pip(host)
    kept = 'echo "$*" >asked_pip; cp "$HOME"/.cache/skyward/tools/uv.txt .'
    pip = f'case "$*" in *"-m pip --version"*) exit 0 ;; *"-m pip install"*) {kept} ;; esac'
    text = (host.bin / f"python{MINOR}").read_text().replace("#!/bin/sh", f"#!/bin/sh\n{pip}")
    (host.bin / f"python{MINOR}").write_text(text.replace("*pip*) exit 1 ;;", "*pip*) exit 0 ;;"))
    host.offer("curl", "exit 6")
    host.run(host.script(Image(pip=["six"])))
    assert "--require-hashes" in (host.home / "asked_pip").read_text()
    assert f"{REQUIREMENT}\n" == (host.home / "uv.txt").read_text()


def test_what_failed_goes_on_where_it_was(host: Host) -> None:
    """Packages that failed are asked for again, the environment below them is not made again."""
    environment(host)
    script = host.script(
        Image(pip=["six"]),
        Shell("echo a >>ran", scope="environment"),
        Shell("[ -e fixed ] || exit 9", scope="environment"),
    )
    (host.home / "broken").touch()
    assert marked(host.run(script)[1])[-1] == "failed venv 5"
    (host.home / "broken").unlink()
    assert marked(host.run(script)[1])[-1] == "failed plugins 9"
    (host.home / "fixed").touch()
    code, lines = host.run(script)
    assert (code, phases(lines)) == (0, ["python", "uv", "plugins", "agent"])
    assert asked(host) == ["venv", "venv", "pip"]
    assert (host.home / "ran").read_text().split() == ["a"]


def test_commands_have_the_environment_first_on_their_path(host: Host) -> None:
    """Also where the image sets a path of its own."""
    environment(host)
    op = Shell('echo "$PATH" >path; echo "$VIRTUAL_ENV" >virtual', scope="environment")
    code, lines = host.run(host.script(Image(env={"PATH": "/theirs"}), op))
    assert code == 0, lines
    first, second = (host.home / "path").read_text().split(":")[:2]
    assert first == (host.home / "virtual").read_text().strip() + "/bin"
    assert second == "/theirs"


@pytest.mark.slow
@pytest.mark.parametrize("flock", [True, False])
def test_two_scripts_at_once(host: Host, flock: bool) -> None:
    """Two nodes on one host share the environment that one of them makes, with flock and setsid and without."""
    environment(host)
    if not flock:
        tools = host.home / "tools"
        tools.mkdir()
        for directory in ("/usr/bin", "/bin"):
            for tool in Path(directory).iterdir():
                if tool.name not in {"flock", "setsid"} and not (tools / tool.name).is_symlink():
                    (tools / tool.name).symlink_to(tool)
        host.path = f"{host.bin}:{tools}"
        # One that was held by a script that has died.
        (host.cache / "environments").mkdir(parents=True)
    image, op = Image(pip=["six"]), Shell("echo e >>ran", scope="environment")
    scripts = [host.script(image, op, node=f"{host.node}-{number}") for number in range(4)]
    if not flock:
        key = re.findall(r"environments/(py[^\"]+)\"", scripts[0].read_text())[0]
        (host.cache / "environments" / f"{key}.held").symlink_to(f"{os.getpid()}-1")
    started = [host.start(script) for script in (*scripts, *scripts)]
    ended = [(process.communicate(timeout=50)[0], process.returncode) for process in started]
    assert [code for _, code in ended] == [0] * 8, ended
    assert asked(host) == ["venv", "pip"]
    assert (host.home / "ran").read_text().split() == ["e"]
    assert 4 == sum("phase completed agent" in out for out, _ in ended)


def test_a_python_of_another_version_is_refused(host: Host) -> None:
    """With one line that says what was found."""
    host.path = str(host.bin)
    for tool in "mkdir cat date sleep flock grep tr rm mv id dirname".split():
        host.offer(tool, f'exec "{shutil.which(tool) or tool}" "$@"')
    host.offer("python3", f'[ "$2" != pip ] || exit 1\nexec "{sys.executable}" "$@"')
    script = host.script(Image(python="3.99"))
    process = subprocess.run(
        ["/bin/sh", str(script)],
        env={"HOME": str(host.home), "PATH": host.path},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    lines = process.stdout.splitlines()
    assert process.returncode == 1, process
    assert marked(lines)[-1] == "failed python 1"
    version = ".".join(map(str, sys.version_info[:3]))
    (line,) = [line for line in lines if line.startswith("skyward: ")]
    assert line.startswith("skyward: no Python 3.99 on this machine: found ")
    assert f"({version})" in line


def test_system_packages_need_root(host: Host) -> None:
    """Without root and without sudo one line says so; what is installed already needs neither."""
    host.offer("id", "echo 1000")
    host.offer("sudo", "exit 1")
    host.offer("apt-get", "touch never")
    host.offer("dpkg-query", 'for name; do :; done; [ "$name" != there ] || echo install ok installed')
    code, lines = host.run(host.script(Image(apt=["there", "missing", "$(touch pwned)".replace(" ", "")])))
    assert code == 1
    assert marked(lines)[-1] == "failed apt 1"
    (line,) = [line for line in lines if line.startswith("skyward: ")]
    assert line.startswith("skyward: apt needs root: ")
    assert line.endswith("missing $(touchpwned)")
    assert not (host.home / "never").exists()
    code, lines = host.run(host.script(Image(apt=["there"])))
    assert (code, phases(lines)) == (0, ["python", "agent"])


def test_system_packages_are_installed_by_root(host: Host) -> None:
    """Those that are missing, in a waiting and silent way, directly or by sudo."""
    host.offer("dpkg-query", f'[ ! -e "{host.home}/done" ] || echo "install ok installed$VERSION"')
    host.offer("apt-get", f'echo "$DEBIAN_FRONTEND $*" >>"{host.home}/asked"; touch "{host.home}/done"')
    host.offer("sudo", f'shift; echo sudo >>"{host.home}/asked"; exec "$@"')
    options = "-o DPkg::Lock::Timeout=300"
    expected = [f" {options} update", f"noninteractive {options} install --yes git jq"]
    for user in ("0", "1000"):
        host.offer("id", f"echo {user}")
        code, lines = host.run(host.script(Image(apt=["git"]), AptInstall(["jq"])))
        assert code == 0, lines
        assert "apt" in phases(lines)
        seen = (host.home / "asked").read_text().splitlines()
        assert [line for line in seen if line != "sudo"] == expected
        assert ("sudo" in seen) == (user != "0")
        assert "apt" not in phases(host.run(host.script(Image(apt=["git"])))[1])
        (host.home / "asked").unlink()
        (host.home / "done").unlink()


def watchdog(host: Host) -> int:
    """Give the number of the watchdog."""
    return int((host.directory / "watchdog.pid").read_text())


@pytest.mark.slow
def test_a_silent_client_ends_the_node(host: Host) -> None:
    """The node lives while the lease changes; then agent, orphans and directory go, and the machine's end is called."""
    script = host.script(ttl=1, end=("sh", "-c", 'echo "$1" >>"$HOME/ended"', "sh", "it's over"))
    (host.directory).mkdir(parents=True)
    stop = time.monotonic() + 5

    def renew() -> bool:
        (host.directory / "lease.new").write_text(str(time.monotonic_ns()))
        (host.directory / "lease.new").rename(host.directory / "lease")
        return time.monotonic() > stop

    process = host.start(script)
    until(lambda: renew() and process.poll() is not None)
    assert process.communicate()[0].count("phase completed") == 3
    dog, agent = watchdog(host), int((host.directory / "agent.pid").read_text())
    assert {agent, int((host.directory / "child.pid").read_text())} <= set(host.pids())
    assert dog not in host.pids()
    until(lambda: not host.directory.exists())
    assert host.pids() == []
    assert (host.home / "ended").read_text() == "it's over\n"
    until(lambda: not _read(Path(f"/proc/{dog}/cmdline")))


@pytest.mark.slow
def test_a_node_ends_with_its_life(host: Host) -> None:
    """However often its client tells that it is there."""
    script = host.script(life=1)
    # On a slow machine its life is over while the script still runs.
    assert host.run(script)[0] in (0, 137)

    def renewed_in_vain() -> bool:
        # Touched and never made: a file made at this moment would keep the directory from being removed.
        with contextlib.suppress(FileNotFoundError):
            os.utime(host.directory / "lease")
        return not host.directory.exists()

    until(renewed_in_vain)
    until(lambda: not host.pids())


@pytest.mark.slow
def test_a_watchdog_is_kept_and_replaced(host: Host) -> None:
    """A second run leaves it alone, one with another limit puts another in its place; it goes with the directory."""
    assert host.run(host.script(ttl=600))[0] == 0
    first = watchdog(host)
    assert "watchdog" not in phases(host.run(host.script(ttl=600))[1])
    assert watchdog(host) == first
    # Long enough not to act by itself meanwhile.
    assert "watchdog" in phases(host.run(host.script(ttl=300))[1])
    second = watchdog(host)
    assert second != first
    until(lambda: not _read(Path(f"/proc/{first}/cmdline")))
    shutil.rmtree(host.directory)
    until(lambda: not _read(Path(f"/proc/{second}/cmdline")))


@pytest.mark.slow
def test_a_machine_ends_itself_although_its_nodes_directory_is_gone(host: Host) -> None:
    """The process that removed it, as an agent does that leaves, may be dead before it gives the machine back."""
    assert host.run(host.script(ttl=10, end=("touch", f"{host.home}/ended")))[0] == 0
    dog = watchdog(host)
    shutil.rmtree(host.directory)
    assert not (host.home / "ended").exists()
    until((host.home / "ended").exists)
    until(lambda: not _read(Path(f"/proc/{dog}/cmdline")))


@pytest.mark.slow
def test_a_machine_that_cannot_end_itself_tries_again(host: Host) -> None:
    """Its way to end itself may be out of order for longer than a moment."""
    script = 'echo try >>"$HOME/tries"; [ "$(grep -c try "$HOME/tries")" -ge 3 ]'
    assert host.run(host.script(ttl=1, end=("sh", "-c", script)))[0] in (0, 137)
    until(lambda: not host.directory.exists(), 60)
    assert (host.home / "tries").read_text() == "try\n" * 3


@pytest.mark.slow
def test_a_watchdog_ends_what_the_script_still_runs(host: Host) -> None:
    """A step that hangs is ended with the node, and no agent is started after that."""
    process = host.start(host.script(Image(), Shell("sleep 600"), ttl=1))
    out, _ = process.communicate(timeout=50)
    assert process.returncode == 137
    assert marked(out.splitlines())[-1] == "failed plugins 137"
    until(lambda: not host.directory.exists())
    assert host.pids() == []


@pytest.mark.packaging
def test_packages_are_really_installed(host: Host) -> None:
    """By the real uv, which pip brings where there is none."""
    host.path = "/usr/bin:/bin"
    (host.home / ".pyenv" / "versions" / "one" / "bin").mkdir(parents=True)
    (host.home / ".pyenv" / "versions" / "one" / "bin" / "python3").symlink_to(host.bin / f"python{MINOR}")
    script = host.script(Image(pip=["six"]))
    code, lines = host.run(script)
    assert code == 0, lines
    python = marked(lines)[-1].removeprefix("done ")
    assert subprocess.run([python, "-c", "import six"], check=False).returncode == 0
    assert phases(host.run(script)[1]) == ["python"]
