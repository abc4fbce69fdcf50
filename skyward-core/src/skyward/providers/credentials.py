"""Where the one key of an account is looked for: what the user gives, variables, files of the cloud's own tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from skyward.errors import NoCredentialsError

__all__ = ["Credential"]


@frozen(kw_only=True)
class Credential:
    """
    Name the places of a key.

    Args:
        provider: The provider's name in errors, such as `"digitalocean"`.
        title: The company's own name, such as `"DigitalOcean"`.
        parameter: The provider's parameter that takes it, such as `"token"`.
        variables: Environment variables, those that the cloud's own tools know among them; the first one counts.
        hint: How to get one.
        files: Paths of files that hold nothing but the key, those of the cloud's own tools; `~` is the `HOME` of the
            environment, and `~/.config` its `XDG_CONFIG_HOME`.
        word: What the cloud calls it.

    >>> shed = Credential(provider="shed", title="Shed", parameter="api_key", variables=("SHED_KEY",), hint="Ask.")
    >>> shed.find(None, {"SHED_KEY": "k"}), shed.known(None, {})
    ('k', '')
    """

    provider: str
    title: str
    parameter: str
    variables: tuple[str, ...]
    hint: str
    files: tuple[str, ...] = ()
    word: str = "key"

    def known(self, given: str | None, environment: Mapping[str, str]) -> str:
        """
        Return the key, empty if there is none.

        Args:
            given: What the user wrote; counts most.
            environment: The variables.
        """
        return next((key for key in self._found(given, environment) if key), "")

    def find(self, given: str | None, environment: Mapping[str, str]) -> str:
        """
        Return the key.

        Args:
            given: What the user wrote; counts most.
            environment: The variables.

        Raises:
            NoCredentialsError: If there is none; the message lists where it was looked for.
        """
        key = self.known(given, environment)
        if not key:
            places = ", ".join((f"{self.parameter}=", *self.variables, *self._files(environment)))
            raise NoCredentialsError(
                f"There is no {self.word} for {self.title}. Looked at: {places}.",
                provider=self.provider,
                hint=self.hint,
            )
        return key

    def _files(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        settings = environment.get("XDG_CONFIG_HOME")
        return tuple(name.replace("~/.config", settings, 1) if settings else name for name in self.files)

    def _found(self, given: str | None, environment: Mapping[str, str]) -> Iterator[str]:
        yield given or ""
        yield from (environment.get(name, "") for name in self.variables)
        home = Path(environment.get("HOME") or "~").expanduser()
        for name in self._files(environment):
            try:
                yield (home / name.removeprefix("~/")).read_text(encoding="utf-8").strip()
            except (OSError, ValueError):
                continue
