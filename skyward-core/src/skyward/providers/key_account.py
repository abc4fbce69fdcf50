"""An account that is used by one key, over an API that speaks JSON."""

from __future__ import annotations

import os
from functools import cached_property

from skyward.providers.credentials import Credential
from skyward.rest.api import Api, Login
from skyward.rest.service import Service

__all__ = ["KeyAccount"]


class KeyAccount:
    """
    Use an account by its key.

    Nothing is looked for, and no call made, before something is asked.

    Args:
        service: The API.
        credential: Where the key is looked for.
        given: The key that the user wrote; None for that of the environment or a file.
        endpoint: Address of the API that the user wrote; None for the service's own.

    >>> key = Credential(provider="shed", title="Shed", parameter="api_key", variables=("SHED_KEY",), hint="Ask.")
    >>> service = Service(provider="shed", title="Shed", base_url="https://shed.example")
    >>> KeyAccount(service, key, "hidden").url
    'https://shed.example'
    """

    def __init__(
        self, service: Service, credential: Credential, given: str | None, endpoint: str | None = None
    ) -> None:
        self._service = service
        self._credential = credential
        self._given = given
        self._endpoint = endpoint

    @property
    def url(self) -> str:
        """Return where the API is."""
        return self._service.located(os.environ, self._endpoint).base_url

    @property
    def key(self) -> str:
        """
        Return the account's key.

        Raises:
            NoCredentialsError: If there is none; the message lists where it was looked for.
        """
        return self._credential.find(self._given, os.environ)

    @property
    def known_key(self) -> str:
        """Return the account's key, empty if there is none: what tells accounts apart without a call."""
        return self._credential.known(self._given, os.environ)

    def identity(self) -> str:
        """
        Return what tells this account from others, for what its pools share; it holds the key.

        Raises:
            NoCredentialsError: If there is no key.
        """
        return f"{self.url} {self.key}"

    @cached_property
    def api(self) -> Api:
        """Return what makes the calls."""
        return Api(self._service.located(os.environ, self._endpoint), lambda _stale: Login.bearer(self.key))
