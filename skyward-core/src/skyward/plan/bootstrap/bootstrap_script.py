"""The shell script that makes a machine ready, from what an image and the plugins ask for."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable, Sequence

from attrs import frozen

from skyward.model.spec.image import Image, python_version
from skyward.model.spec.op import AptInstall, Op, Shell
from skyward.plain import redacted
from skyward.plan.bootstrap.cache_text import CACHE, make_entries
from skyward.plan.bootstrap.environment_commands import SHELL_VARS, Step, apt_packages, environment_steps, op_step
from skyward.plan.bootstrap.uv_release import ARCHIVES, REQUIREMENT, VERSION
from skyward.shell_files import shell_file

__all__ = ["Ground", "preview", "render"]

ENDINGS = 1440
"""How often a machine tries to end itself, once a minute: an API that it needs for that may be out of order."""

_PLACEHOLDER = re.compile(r"(\{(?:uv|environment|python)\})")
_VARIABLES = {"{uv}": '"$UV"', "{environment}": '"$ENVIRONMENT"', "{python}": '"$PYTHON"'}
_SHOWN = {"{uv}": "uv", "{environment}": "$ENVIRONMENT", "{python}": "$PYTHON"}
# A dollar sign that begins the name of a variable stays; whatever else could run or end a word is disarmed.
_LIVE = re.compile(r'[\\"`]|\$(?![A-Za-z_{])')
# A shell keeps these for itself and ends when they are set; the workers get them from the agent.
_RESERVED = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "LINENO", "OPTIND", "PPID", "SHELLOPTS", "UID"})


@frozen(kw_only=True)
class Ground:
    """
    Where on the node things are; variables of the node's shell such as `$HOME` may stand in every text.

    Args:
        cache: Directory of everything that Skyward keeps there; `$SKYWARD_HOME` from then on.
        node: Directory of this node, `$NODE` from then on; its last part is the mark of the node's processes.
        runtime: Name of the directory below `$SKYWARD_HOME/runtime` that our side of a worker was unpacked into.
        token: Random word that begins the script's own lines, so that no program's output is taken for one.
    """

    cache: str = CACHE
    node: str
    runtime: str
    token: str


def render(
    image: Image,
    ops: Sequence[Op],
    ground: Ground,
    *,
    agent: Sequence[str],
    ttl: float,
    life: float | None,
    end: Sequence[str] = (),
) -> str:
    """
    Write the script that makes a machine ready and starts its agent.

    It is for any POSIX shell, says what it does in lines that begin with `@@TOKEN`, and goes on where it was when it is
    run again.

    Args:
        image: What the node's environment must hold.
        ops: What plugins add.
        ground: Where things are.
        agent: Command line of the agent; `$PYTHON` and `$NODE` may stand in it.
        ttl: Seconds without a change of `$NODE/lease` after which the node ends itself; 0 for never.
        life: Seconds after which it ends itself whatever happens; None for never.
        end: Command that ends the machine, as far as it can end itself; its watchdog goes on without the node's
            directory then.

    >>> script = render(Image(), [], Ground(node="$SKYWARD_HOME/nodes/a-0", runtime="1f", token="t"),
    ...                 agent=["$PYTHON", "-c", "pass"], ttl=0, life=None)
    >>> print(*script.splitlines()[-3:-1], sep="\\n")
    find_python
    start_agent '$PYTHON -c pass' "$PYTHON" "-c" "pass"
    """
    return "\n".join(
        (
            "#!/bin/sh",
            shell_file(__package__, "prepare.sh"),
            shell_file(__package__, "node_processes.sh"),
            _uv(),
            make_entries(),
            *_beginning(image, ground),
            *_watchdog(ttl, life, end),
            *_packages(image, ops),
            *_python(image),
            *_environment(image, ops),
            *_machine_ops(ops),
            *_shell_vars(image),
            *_agent(agent),
            "",
        )
    )


def preview(image: Image, ttl: float = 0) -> str:
    """
    Write the script for people to read, with names in the place of what is drawn at random.

    Args:
        image: What the node's environment must hold.
        ttl: Seconds without a word from the client after which the node ends itself; 0 for never.

    >>> "uv pip install" in preview(Image(pip=["six"]))
    True
    """
    ground = Ground(node="$SKYWARD_HOME/nodes/preview", runtime="preview", token="skyward")  # noqa: S106
    agent = ("$PYTHON", "-P", "-m", "skyward.node.agent.agent_main", "--listen", "$NODE")
    return redacted(render(image, (), ground, agent=agent, ttl=ttl, life=None))


def _uv() -> str:
    """Write the functions that find uv, or install the one release of it whose hashes are known."""
    hashes = {machine.upper(): digest for machine, digest in ARCHIVES.items()}
    return shell_file(__package__, "uv.sh", VERSION=VERSION, REQUIREMENT=REQUIREMENT, **hashes)


def _beginning(image: Image, ground: Ground) -> Iterable[str]:
    yield "image_env() {"
    yield "  :"
    for name, text in image.env.items():
        if name not in _RESERVED:
            # Whatever the workers' path is, this script needs its own.
            rest = ':"$PATH"' if name == "PATH" else ""
            yield f"  export {name}={shlex.quote(text)}{rest}"
    yield "}"
    yield f'set -- "$(umask)" "$HOME" {_expanded(ground.cache)}'
    yield "image_env"
    yield f"TOKEN={shlex.quote(ground.token)}"
    yield shell_file(__package__, "begin.sh", NODE=_expanded(ground.node), RUNTIME=_expanded(ground.runtime))


def _watchdog(ttl: float, life: float | None, end: Sequence[str]) -> Iterable[str]:
    if not ttl and not life:
        return
    pause = min([5, *(limit / 4 for limit in (ttl, life) if limit)])
    body = shell_file(
        __package__,
        "watchdog.sh",
        TTL=str(math.ceil(ttl)),
        LIFE=str(math.ceil(life or 0)),
        PAUSE=str(max(1, int(pause))),
        ENDINGS=str(ENDINGS),
        END=shlex.join(end) or ":",
        THERE=":" if end else '[ -d "$NODE" ]',
    )
    body = f"{shell_file(__package__, 'node_processes.sh')}\n{body}"
    yield f"write_watchdog() {{\n  cat <<{_here(body, 'WATCHDOG')}\n}}"
    yield "start_watchdog"


def _here(text: str, delimiter: str) -> str:
    """Write what follows `<<` to have a text be read as it is, whatever its lines are."""
    while delimiter in text.splitlines():
        delimiter += "_"
    return f"'{delimiter}'\n{text.removesuffix(chr(10))}\n{delimiter}"


def _packages(image: Image, ops: Sequence[Op]) -> Iterable[str]:
    if names := apt_packages(image, ops):
        yield f"install_packages {shlex.join(names)}"
    # From here on, what the script runs belongs to the node; a package manager must never be cut off.
    yield 'export SKYWARD_NODE="$MARK"'


def _python(image: Image) -> Iterable[str]:
    version = python_version(image)
    yield f"WANTED={version}"
    yield f"MINOR={'.'.join(version.split('.')[:2])}"
    yield "find_python"


def _environment(image: Image, ops: Sequence[Op]) -> Iterable[str]:
    own = [op for op in ops if op.scope == "environment"]
    if not image.needs_environment and not own:
        return
    steps = environment_steps(image, "{python}")
    yield f'ENVIRONMENT="$SKYWARD_HOME/environments/{_key(image, own)}"'
    yield "open_environment"
    yield 'if [ ! -e "$ENVIRONMENT/.complete" ]; then'
    yield "  phase uv"
    yield "  get_uv || fail 'uv cannot be had: it is not on this machine, and neither pip nor its installer brought it'"
    yield "  completed"
    for phase in dict.fromkeys(step.phase for step in steps):
        yield from _once(phase, (_run(step) for step in steps if step.phase == phase))
    if own:
        pieces = (piece for index, op in enumerate(own) for piece in _once(f"plugins-{index}", [_op(op)], phase=False))
        # The machine's own steps, which come next, belong to the same phase.
        closed = all(op.scope == "environment" or isinstance(op, AptInstall) for op in ops)
        yield from _once("plugins", pieces, closed=closed)
    yield '  : >"$ENVIRONMENT/.complete"'
    yield "fi"
    yield "unlock 8"


def _machine_ops(ops: Sequence[Op]) -> Iterable[str]:
    own = [op for op in ops if isinstance(op, Shell) and op.scope == "machine"]
    if own:
        yield '[ "$PHASE" = plugins ] || phase plugins'
        yield 'lock 9 "$SKYWARD_HOME/locks/machine"'
        yield from map(_op, own)
        yield "unlock 9"
        yield "completed"


def _shell_vars(image: Image) -> Iterable[str]:
    if image.shell_vars:
        yield f"phase {SHELL_VARS}"
        yield ': >"$NODE/shell_vars.new"'
        for name, text in image.shell_vars.items():
            yield f"shell_var {name} {_shown(text)} {shlex.quote(text)}"
        yield 'mv -f "$NODE/shell_vars.new" "$NODE/shell_vars"'
        yield "completed"


def _agent(words: Sequence[str]) -> Iterable[str]:
    yield f"start_agent {_shown(' '.join(words))} {' '.join(map(_expanded, words))}"
    yield 'say "done ${ENVIRONMENT:-$PYTHON}${ENVIRONMENT:+/bin/python}"'


def _once(name: str, lines: Iterable[str], *, phase: bool = True, closed: bool = True) -> Iterable[str]:
    """Guard lines so that they run once in the life of an environment."""
    yield f"  if todo {name}; then"
    if phase:
        yield f"    phase {name}"
    yield from (f"    {line}" for line in lines)
    yield f"    finished {name}"
    if phase and closed:
        yield "    completed"
    yield "  fi"


def _op(op: Op) -> str:
    """Write what runs one step of a plugin."""
    if isinstance(op, Shell):
        return f"user {_shown(op.command)} sh -ec {shlex.quote(op.command)}"
    return _run(op_step(op))


def _run(step: Step) -> str:
    """Write what runs a command."""
    shown = " ".join("".join(_SHOWN.get(part) or part for part in _parts(word)) for word in step.shown)
    words = ("".join(_VARIABLES.get(part) or shlex.quote(part) for part in _parts(word)) for word in step.argv)
    ran = f"run {_shown(shown)} {' '.join(words)}"
    if step.stdin:
        ran += f" <<{_here(step.stdin, 'INPUT')}"
    if not step.env:
        return ran
    # Never in a command line, which all users of the machine can read; no program is run to set them.
    given = " ".join(f"{name}={shlex.quote(text)}" for name, text in step.env)
    return f"WITH={shlex.quote(f'export {given}')}\n{ran}\nWITH="


def _parts(word: str) -> list[str]:
    """Cut a word at its placeholders."""
    return [part for part in _PLACEHOLDER.split(word) if part] or [""]


def _shown(command: str) -> str:
    """Write a command as one line to tell, with no password in it."""
    return shlex.quote(redacted(command.strip()).replace("\\\n", " ").replace("\n", "\\n").replace("\r", "\\r"))


def _expanded(text: str) -> str:
    """Quote text in which nothing but variables is expanded."""
    return '"' + _LIVE.sub(lambda found: "\\" + found[0], text) + '"'


def _key(image: Image, ops: Sequence[Op]) -> str:
    """Name an environment by what is in it."""
    key = f"py{'.'.join(python_version(image).split('.')[:2])}-{image.content_hash()}"
    if not ops:
        return key
    content = json.dumps([op_step(op).content for op in ops])
    return f"{key}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
