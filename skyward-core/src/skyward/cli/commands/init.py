"""`sky init`: a skyward.toml and an example, which run on this machine as they are."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from skyward.cli.terminal import say
from skyward.errors import SkywardError
from skyward.model.cli_command import Command

FILES = {
    "skyward.toml": """\
# Pools of this project: sky.Compute(name="example") opens the one below.

[pools.example]
# Two processes of this machine. For machines of a cloud: { type = "AWS" }, and accelerator = "A10G".
provider = { type = "Local" }
nodes = 2
""",
    "example.py": """\
import skyward as sky


@sky.function
def square(x):
    return x * x


if __name__ == "__main__":
    with sky.Compute(name="example") as pool:
        print(pool.map(square, range(8)))
""",
}


def arguments(parser: ArgumentParser) -> None:
    """Add where the files are written."""
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="where, if not here")


def run(options: Namespace) -> int:
    """
    Write the files.

    Raises:
        SkywardError: If one is there already, or cannot be written; what was there is as it was.
    """
    folder = Path(options.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if there := [name for name in FILES if (folder / name).exists() or (folder / name).is_symlink()]:
            raise SkywardError(
                f"{folder / there[0]} is there already, and nothing was written.", hint="Name another folder."
            )
        for name, text in FILES.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise SkywardError(f"{error.filename or folder} cannot be written: {error.strerror}.") from error
    start = "" if options.folder == "." else f"cd {options.folder} && "
    say(f"Wrote {' and '.join(FILES)}. To run it: {start}python example.py")
    return 0


COMMAND = Command(run, summary="Write a skyward.toml and an example that runs here.", arguments=arguments)
