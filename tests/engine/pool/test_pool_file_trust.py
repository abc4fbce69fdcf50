"""A file that describes pools is trusted at its place and with its content, or is the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skyward.engine.pool.pool_file import find_pool_file, providers_of_file, read_config, read_named
from skyward.engine.pool.pool_file_trust import check_trust, is_trusted, reasons, trust
from skyward.errors import ConfigError
from tests.strangers import give_away

WISH = '[pools.train]\nprovider = { type = "cloud", endpoint = "https://e.example" }\n'
HARMLESS = '[pools.train]\nprovider = { type = "cloud" }\n'


@pytest.fixture(autouse=True)
def _user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a home and a state of his own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of a project that was cloned."""
    path = tmp_path / "cloned" / "skyward.toml"
    path.parent.mkdir()
    path.write_text(WISH)
    return path


def test_a_file_that_wants_more_is_refused_until_it_is_trusted(file: Path) -> None:
    """The error says what it wants, and what to type."""
    with pytest.raises(ConfigError, match=r"is not trusted, .*pools\.train\.provider\.endpoint = ") as caught:
        check_trust(file, WISH)
    assert str(caught.value).endswith(f"if it may: sky trust {file}")
    trust(file, WISH)
    check_trust(file, WISH)


def test_trust_ends_with_a_change(file: Path, tmp_path: Path) -> None:
    """Of the content or of the path, such as by the next commit of another author."""
    trust(file, WISH)
    changed = WISH.replace("e.example", "evil.example")
    elsewhere = tmp_path / "home" / "skyward2.toml"
    elsewhere.write_text(WISH)
    for path, text in ((file, changed), (elsewhere, WISH)):
        assert not is_trusted(path, text)
        with pytest.raises(ConfigError, match="is not trusted"):
            check_trust(path, text)
    check_trust(file, HARMLESS)


def test_what_was_trusted_is_the_users_alone(file: Path, tmp_path: Path) -> None:
    """No other user can trust a file in their name."""
    trust(file, WISH)
    assert 0o700 == (tmp_path / "state" / "trusted").stat().st_mode & 0o777
    give_away(tmp_path / "state" / "trusted")
    with pytest.raises(ConfigError, match=r"is not used, .* SKYWARD_STATE may name another"):
        trust(file, WISH.replace("train", "more"))
    with pytest.raises(ConfigError, match=r"is not used, .* SKYWARD_STATE may name another"):
        check_trust(file, WISH)


@pytest.mark.parametrize("place", ["skyward.toml", ".config/skyward/skyward.toml"])
def test_the_users_own_file_says_what_it_likes(tmp_path: Path, place: str) -> None:
    """In the home, or among the settings, where it is found from everywhere."""
    own = tmp_path / "home" / place
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(WISH)
    check_trust(own, WISH)
    (tmp_path / "somewhere").mkdir()
    assert own == find_pool_file(tmp_path / "somewhere")


def test_a_file_of_another_user_needs_trust_for_all_of_it(file: Path) -> None:
    """Such as one in /tmp, when a program is started below."""
    file.write_text(HARMLESS)
    assert () == reasons(file, HARMLESS)
    give_away(file)
    assert [True] == [each.startswith("all that is in it") for each in reasons(file, HARMLESS)]
    trust(file, HARMLESS)
    check_trust(file, HARMLESS)


def test_nothing_is_made_of_a_file_that_is_not_trusted(file: Path) -> None:
    """Neither for a pool nor for a list of machines."""

    def provider_of(name: str) -> type:
        raise AssertionError

    for ask in (
        lambda: read_named("train", provider_of=provider_of, start=file.parent),
        lambda: providers_of_file(provider_of=provider_of, start=file.parent),
    ):
        with pytest.raises(ConfigError, match="is not trusted"):
            ask()
    assert not Path(os.environ["SKYWARD_STATE"]).exists()


def test_each_file_that_is_extended_has_to_be_trusted(file: Path) -> None:
    """By its own place and content; one elsewhere is read only if the user says so."""
    file.write_text("extends = 'base.toml'\n")
    base = file.with_name("base.toml")
    base.write_text(WISH)
    with pytest.raises(ConfigError, match=rf"{base} is not trusted"):
        read_config(file.parent)
    trust(base, WISH)
    assert read_config(file.parent) is not None
    file.write_text("extends = '../base.toml'\n")
    assert ("extends = '../base.toml'",) == reasons(file, file.read_text())


def test_files_among_the_users_settings_are_the_users_own(tmp_path: Path) -> None:
    """Also those that the first of them extends."""
    settings = tmp_path / "home" / ".config" / "skyward"
    settings.mkdir(parents=True)
    (settings / "skyward.toml").write_text("extends = 'clouds.toml'\n")
    (settings / "clouds.toml").write_text(WISH)
    assert read_config(tmp_path) is not None
