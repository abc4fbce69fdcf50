from pathlib import Path
from typing import Any

import pytest

from skyward import registry
from skyward.engine.pool.pool_file import find_pool_file, read_named
from skyward.errors import ConfigError


def provider_of(name: str) -> Any:
    """Return what makes a provider; the test's pools have none."""
    raise ConfigError(f"There is no provider {name!r}.")


def test_the_nearest_file_is_found(tmp_path: Path) -> None:
    """The file of a folder, or of the nearest folder above it, is the one that counts."""
    inner = tmp_path / "project" / "source"
    inner.mkdir(parents=True)
    (tmp_path / "skyward.toml").touch()
    (tmp_path / "project" / "skyward.toml").touch()

    assert tmp_path / "project" / "skyward.toml" == find_pool_file(inner)
    assert tmp_path / "skyward.toml" == find_pool_file(tmp_path)


def test_a_folder_of_that_name_is_no_file(tmp_path: Path) -> None:
    """Only a file can describe pools."""
    (tmp_path / "inner" / "skyward.toml").mkdir(parents=True)
    (tmp_path / "skyward.toml").touch()

    assert tmp_path / "skyward.toml" == find_pool_file(tmp_path / "inner")


def test_a_pool_is_read_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a start the search begins where the program runs."""
    (tmp_path / "skyward.toml").write_text("[pools.train]\nnodes = 2\n")
    monkeypatch.chdir(tmp_path)

    assert {"nodes": 2} == read_named("train", provider_of=provider_of).keywords


def test_errors_name_the_file(tmp_path: Path) -> None:
    """A user with several files knows which one was read."""
    (tmp_path / "skyward.toml").write_text("[pools.train]\nprovider = 'x'\n")

    with pytest.raises(ConfigError, match=f"{tmp_path}.*There is no provider 'x'"):
        read_named("train", provider_of=provider_of, start=tmp_path)


def test_no_file_is_said_with_what_was_looked_for(tmp_path: Path) -> None:
    """The error tells where the search began and what the file should hold."""
    with pytest.raises(ConfigError, match=rf"no skyward.toml in {tmp_path} or above it.*\[pools.train\]"):
        read_named("train", provider_of=provider_of, start=tmp_path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are no TOML."""
    (tmp_path / "skyward.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match=r"skyward.toml cannot be read"):
        read_named("train", provider_of=provider_of, start=tmp_path)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('provider = { type = "ssh" }', 'Did you mean "SSH"?'),
        ('provider = "local"', 'Did you mean "Local"?'),
        ('plugins = ["tourch"]', 'Did you mean "torch"?'),
        ('provider = "nothing like it at all"', None),
    ],
)
def test_names_are_offered_as_the_file_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, hint: str | None
) -> None:
    """Not as Python does."""
    (tmp_path / "skyward.toml").write_text(f"[pools.train]\n{line}\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError) as caught:
        read_named("train", provider_of=registry.provider, plugin_of=registry.plugin)
    assert hint == caught.value.hint


def test_own_settings_are_below_the_file_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Table by table: a pool may be described in both, and extend one of the other."""
    project, own = tmp_path / "project", tmp_path / "settings" / "skyward"
    for folder in (project, own):
        folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own.parent))
    (project / "skyward.toml").write_text("[pools.train]\nnodes = 4\n[pools.sweep]\nextends = 'base'\n")
    (own / "skyward.toml").write_text("[pools.train]\nnodes = 2\nregion = 'eu'\n[pools.base]\nttl = 60\n")

    assert {"nodes": 4, "region": "eu"} == read_named("train", provider_of=provider_of, start=project).keywords
    assert {"ttl": 60} == read_named("sweep", provider_of=provider_of, start=project).keywords
    assert {"nodes": 2, "region": "eu"} == read_named("train", provider_of=provider_of, start=tmp_path).keywords


def test_a_file_extends_another(tmp_path: Path) -> None:
    """Whose path is relative to its folder."""
    (tmp_path / "base").mkdir()
    (tmp_path / "skyward.toml").write_text("extends = 'base/gpus.toml'\n[pools.train]\nnodes = 4\n")
    (tmp_path / "base" / "gpus.toml").write_text("extends = 'cpus.toml'\n[pools.train]\nnodes = 2\nttl = 60\n")
    (tmp_path / "base" / "cpus.toml").write_text("[pools.train]\nttl = 10\nregion = 'eu'\n")

    pool = read_named("train", provider_of=provider_of, start=tmp_path)
    assert {"nodes": 4, "ttl": 60, "region": "eu"} == pool.keywords


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "extends = 'other.toml'",
            r"other.toml:1:1: extends: .*circle: .*skyward.toml extends .*other.toml extends .*",
        ),
        ("extends = 'none.toml'", r"skyward.toml:1:1: extends: There is no file .*none.toml to extend"),
        ("extends = 4", "extends must be the path of a file, not 4"),
    ],
)
def test_a_file_that_cannot_be_extended_is_refused(tmp_path: Path, line: str, message: str) -> None:
    """The chain of a circle is shown."""
    (tmp_path / "skyward.toml").write_text(f"{line}\n")
    (tmp_path / "other.toml").write_text("extends = 'skyward.toml'\n")
    with pytest.raises(ConfigError, match=message):
        read_named("train", provider_of=provider_of, start=tmp_path)


def test_a_broken_file_is_refused_with_its_place(tmp_path: Path) -> None:
    """Whether its TOML is broken or its text."""
    (tmp_path / "skyward.toml").write_text("[pools.train]\nnodes = \n")
    with pytest.raises(ConfigError, match=r"skyward.toml:2:9: This is no TOML"):
        read_named("train", provider_of=provider_of, start=tmp_path)
    (tmp_path / "skyward.toml").write_bytes(b"a = 1\nb = '\xff'")
    with pytest.raises(ConfigError, match="line 2, column 6 is no text in UTF-8"):
        read_named("train", provider_of=provider_of, start=tmp_path)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Some editors write one."""
    (tmp_path / "skyward.toml").write_text("\ufeff[pools.train]\nnodes = 2\n", encoding="utf-8")
    assert {"nodes": 2} == read_named("train", provider_of=provider_of, start=tmp_path).keywords
