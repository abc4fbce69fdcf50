"""A program as users write them: modules beside it, a package, data, imports early, late and lazy."""

import json
import sys
from pathlib import Path

import package
import sibling

import skyward as sky


@sky.function
def names() -> list[str]:
    """Tell what a node finds."""
    import lazy

    return [sibling.NAME, package.NAME, lazy.NAME, Path("numbers.csv").read_text().strip()]


@sky.function
def changing() -> str:
    """Tell what a file on the node says."""
    import version_of_test

    return str(version_of_test.NAME)


def main(provider: str = "Local", options: str = "{}") -> None:
    """Run on two nodes of the provider that the command line names; nothing else depends on it."""
    chosen = getattr(sky, provider)(**json.loads(options))
    image = sky.Image(includes=["lazy.py", "numbers.csv"])
    with sky.Compute(provider=chosen, nodes=2, image=image, console="silent", logging=False) as pool:
        for found in names() @ pool:
            print(*found)
        import late

        print(sky.function(late.name)() >> pool)
        Path("version_of_test.py").write_text("NAME = 'first'\n")
        sys.dont_write_bytecode = True
        import version_of_test

        print(version_of_test.NAME, *(changing() @ pool))
        Path("version_of_test.py").write_text("NAME = 'second'\n")
        print(*(changing() @ pool))
        pool.refresh()
        print(*(changing() @ pool))


if __name__ == "__main__":
    main(*sys.argv[1:])
