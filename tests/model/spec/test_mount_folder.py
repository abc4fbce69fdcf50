"""A mount point is a folder of the user's own: nothing of the system is hidden by it."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.model.spec.mount_folder import KEPT_FOLDERS, SYSTEM_FOLDERS, in_the_way, mount_folder


@pytest.mark.parametrize("path", ["/data", "/mnt/data", "/mnt", "/opt/data", "/tmp/a/b"])
def test_a_folder_of_its_own_is_taken(path: str) -> None:
    """Also below folders that are no mount points themselves."""
    assert path == mount_folder(path)


def test_a_slash_at_the_end_is_taken_off() -> None:
    """As most people write folders."""
    assert "/data" == mount_folder("/data/")


@pytest.mark.parametrize("path", sorted(KEPT_FOLDERS))
def test_a_folder_that_holds_what_is_needed_is_refused(path: str) -> None:
    """Its files would be hidden."""
    with pytest.raises(ConfigError, match=f"mount must not be '{path}', whose files would be hidden"):
        mount_folder(path)


@pytest.mark.parametrize(
    "path", [*sorted(SYSTEM_FOLDERS), "/etc/data", "/var/lib/data", "/opt/skyward/x", "/usr/local/x/"]
)
def test_what_is_in_a_folder_of_the_system_is_refused(path: str) -> None:
    """The folder and all below it."""
    with pytest.raises(ConfigError, match="is the system's"):
        mount_folder(path)


@pytest.mark.parametrize("path", ["data", "./data", "~/data", "C:/data"])
def test_a_relative_path_is_refused(path: str) -> None:
    """It would depend on where a process was started."""
    with pytest.raises(ConfigError, match=r"mount must be an absolute path, not .*Write mount="):
        mount_folder(path)


@pytest.mark.parametrize(
    "path", ["/data/../etc", "/data/./x", "/data//x", "//data", "/da ta", "/da'ta", "/data\\x", "/dätä"]
)
def test_a_path_with_detours_or_odd_characters_is_refused(path: str) -> None:
    """It may lead elsewhere, or mean something to a shell."""
    with pytest.raises(ConfigError, match="normalised path of letters"):
        mount_folder(path)


def test_the_error_names_the_parameter() -> None:
    """It is `mount_path` in older programs."""
    with pytest.raises(ConfigError, match=r'^mount_path must .* Write mount_path="/data"'):
        mount_folder("/etc", "mount_path")


def test_folders_in_each_other_are_found() -> None:
    """Whatever their order; a common beginning of the names alone is none."""
    assert ("/data", "/data") == in_the_way(["/data", "/x", "/data"])
    assert ("/data", "/data/a/b") == in_the_way(["/data-2", "/data/a/b", "/data"])
    assert in_the_way(["/data", "/data-2", "/database"]) is None
