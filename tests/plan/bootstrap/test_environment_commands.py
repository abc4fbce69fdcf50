"""The commands that make an environment."""

from __future__ import annotations

import re

import pytest

from skyward.model.fields.pip_index import PipIndex
from skyward.model.spec.image import Image
from skyward.model.spec.op import PipInstall, Shell
from skyward.plan.bootstrap.environment_commands import Step, environment_steps, not_installed, op_step


def test_packages_are_installed_into_the_environment() -> None:
    """All in one command, with the extra index."""
    steps = environment_steps(
        Image(pip=["six", "attrs>=23"], pip_extra_index_url="https://x.example/simple"), "python3"
    )
    assert steps[0].argv[:2] == ("{uv}", "venv")
    assert steps[1].argv[-2:] == ("six", "attrs>=23")
    assert steps[1].env == (("UV_EXTRA_INDEX_URL", "https://x.example/simple"),)


def test_scoped_packages_come_from_their_index() -> None:
    """However their names are spelled."""
    index = PipIndex(url="https://t.example/whl", packages=["Torch_Vision"])
    steps = environment_steps(Image(pip=["torch-vision==1", "six"], pip_indexes=[index]), "python3")
    assert [(step.argv[-1], step.env) for step in steps[1:]] == [
        ("torch-vision==1", (("UV_INDEX", "https://t.example/whl"),)),
        ("six", ()),
    ]


def test_braces_of_a_shell_command_stay() -> None:
    """They are no placeholders of ours."""
    step = op_step(Shell("echo ${HOME}", scope="environment"))
    assert step.argv[-1].format(uv="", environment="") == "echo ${HOME}"


def test_plugins_packages_come_after_the_images() -> None:
    """With their own index, if they name one."""
    step = op_step(PipInstall(["flash-attn"], index_url="https://f.example/simple"))
    assert (step.argv[-1], step.env) == ("flash-attn", (("UV_INDEX", "https://f.example/simple"),))


@pytest.mark.parametrize(
    ("wanted", "missing", "said"),
    [
        ([], None, ""),
        (["git"], [], ""),
        (
            ["git", "libc++1=2"],
            ["git", "libc++1=2"],
            "git, libc++1=2 are not on this machine, .* install --yes git libc",
        ),
        (
            ["git"],
            None,
            "apt: whether git is on this machine is not known, because it has no dpkg, and Skyward installs",
        ),
    ],
)
def test_missing_system_packages_are_told_in_a_line(wanted: list[str], missing: list[str] | None, said: str) -> None:
    """With what to type, where that is known; nothing where nothing is missing."""
    line = not_installed(wanted, missing)
    assert bool(said) is bool(line)
    assert re.search(re.escape(said).replace(r"\.\*", ".*"), line)
    assert "\n" not in line


SECRET = "https://me:hun@ter2@x.example/simple"


@pytest.mark.parametrize(
    "step",
    [
        environment_steps(Image(pip=["six"], pip_extra_index_url=SECRET), "python3")[1],
        environment_steps(Image(pip=["six"], pip_indexes=[PipIndex(SECRET, ["six"])]), "python3")[1],
        environment_steps(Image(pip=["six", f"own @ git+{SECRET}"]), "python3")[1],
        op_step(PipInstall(["six"], index_url=SECRET)),
        op_step(PipInstall([f"own @ {SECRET}"])),
    ],
    ids=["extra", "scoped", "by address", "of a plugin", "by address of a plugin"],
)
def test_no_password_is_in_a_command_line(step: Step) -> None:
    """Every user of the machine can read those; nor is it in anything that is shown."""
    assert [] == [word for word in (*step.argv, *step.shown, repr(step)) if "ter2" in word]
    assert 1 == "".join(step.content).count("hun@ter2")


def test_packages_by_address_are_installed_with_the_others() -> None:
    """Their versions have to be agreed on together."""
    step = environment_steps(Image(pip=["six", f"own @ {SECRET}"]), "python3")[1]
    assert ("six", "-r", "-") == step.argv[-3:]
    assert f"own @ {SECRET}\n" == step.stdin
