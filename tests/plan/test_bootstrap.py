"""The commands that make an environment."""

from __future__ import annotations

from skyward.model.image import Image
from skyward.model.op import PipInstall, Shell
from skyward.model.pip_index import PipIndex
from skyward.plan.bootstrap import environment_steps, op_step


def test_packages_are_installed_into_the_environment() -> None:
    """All in one command, with the extra index."""
    steps = environment_steps(
        Image(pip=["six", "attrs>=23"], pip_extra_index_url="https://x.example/simple"), "python3"
    )
    assert steps[0].argv[:2] == ("{uv}", "venv")
    assert steps[1].argv[-4:] == ("--extra-index-url", "https://x.example/simple", "six", "attrs>=23")


def test_scoped_packages_come_from_their_index() -> None:
    """However their names are spelled."""
    index = PipIndex(url="https://t.example/whl", packages=["Torch_Vision"])
    steps = environment_steps(Image(pip=["torch-vision==1", "six"], pip_indexes=[index]), "python3")
    assert [step.argv[-3:] for step in steps[1:]] == [
        ("--index", "https://t.example/whl", "torch-vision==1"),
        ("--python", "{environment}/bin/python", "six"),
    ]


def test_braces_of_a_shell_command_stay() -> None:
    """They are no placeholders of ours."""
    step = op_step(Shell("echo ${HOME}", scope="environment"))
    assert step.argv[-1].format(uv="", environment="") == "echo ${HOME}"


def test_plugins_packages_come_after_the_images() -> None:
    """With their own index, if they name one."""
    assert op_step(PipInstall(["flash-attn"], index_url="https://f.example/simple")).argv[-3:] == (
        "--index",
        "https://f.example/simple",
        "flash-attn",
    )
