"""The command that installs what is missing, from where the rest came."""

from __future__ import annotations

import re
from typing import Any

import pytest

from skyward.origin import command, install

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "pip install skyward-aws==1.0"),
        ({"url": "https://example.org/skyward_core-1.0-py3-none-any.whl"}, "pip install skyward-aws==1.0"),
        ({"url": "file:///src/skyward-core", "dir_info": {}}, "pip install /src/skyward-aws"),
        (
            {"url": "file:///my%20src/skyward-core", "dir_info": {"editable": True}},
            "pip install --editable '/my src/skyward-aws'",
        ),
        (
            {"url": "file:///dist/skyward_core-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install --find-links /dist skyward-aws==1.0",
        ),
        (
            {
                "url": "https://example.org/it.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT},
                "subdirectory": "skyward-core",
            },
            f"pip install 'skyward-aws @ git+https://example.org/it.git@{COMMIT}#subdirectory=skyward-aws'",
        ),
    ],
)
def test_each_source_has_its_command(origin: dict[str, Any] | None, expected: str) -> None:
    """A folder, a wheel beside the others, a repository, an index; never the name that is another program's."""
    assert expected == command("skyward-aws", "1.0", origin)


def test_core_that_was_not_installed_has_no_version_to_ask_for() -> None:
    """Its sources are on the path alone."""
    assert "pip install skyward-aws" == command("skyward-aws", None, None)


@pytest.mark.parametrize(
    ("extra", "distribution"), [("aws", "skyward-aws"), ("joblib", "skyward-sklearn"), ("mig", "skyward-mig")]
)
def test_an_extra_is_a_distribution(extra: str, distribution: str) -> None:
    """`joblib` and `sklearn` are one."""
    assert install(extra).startswith("pip install ")
    assert distribution in re.split(r"[ /=]", install(extra))
