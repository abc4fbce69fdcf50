"""Run the checks: `python -m skyward.testing.conformance module:factory`, and pytest's own options after it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def main(words: list[str]) -> int:
    """
    Run the checks, and return the exit status.

    Args:
        words: What makes the provider, as `module:factory`, and options.
    """
    if not words or words[0].startswith("-"):
        sys.stderr.write("Usage: python -m skyward.testing.conformance MODULE:FACTORY [OPTIONS OF pytest]\n")
        return 2
    target, *options = words
    checks = Path(__file__).with_name("checks.py")
    # As `python -m` does: what is in the working directory can be imported.
    sys.path.insert(0, "")
    plugin = ["-p", "skyward.testing.conformance.conformance_options", "--skyward-provider", target]
    # The settings of the author's own suite are not meant for this one.
    alone = ["-c", os.devnull, "--rootdir", os.getcwd(), "--import-mode", "importlib", "-o", "python_files=checks.py"]
    alone += ["-p", "no:cacheprovider"]
    return int(pytest.main([*plugin, *alone, str(checks), *options]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
