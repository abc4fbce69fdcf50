"""Shell text that machines run: kept as `.sh` files beside a provider's code, filled in and shortened."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["shell_text"]


def shell_text(package: str, name: str, **values: str) -> str:
    """
    Return the text of a `.sh` file, without its comments, with each `@NAME@` replaced.

    Args:
        package: The package that it is in.
        name: The file's name without its ending.
        values: What stands for each name; quoted by the caller where the shell wants it.

    Raises:
        KeyError: If a value has no place in the text.
    """
    text = files(package).joinpath(f"{name}.sh").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    text = "\n".join(lines)
    for mark, value in values.items():
        if f"@{mark}@" not in text:
            raise KeyError(mark)
        text = text.replace(f"@{mark}@", value)
    return text
