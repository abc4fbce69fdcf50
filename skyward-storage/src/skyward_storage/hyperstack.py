"""Keys of Hyperstack's object storage, which its API makes from an API key."""

from __future__ import annotations

import os

from attrs import field, frozen

from skyward.errors import CredentialsError
from skyward.rest import Api, Login, Misread, Service, text, whole
from skyward_storage.keys import Keys, Secret

__all__ = ["ENDPOINTS", "HyperstackKeys"]

ENDPOINTS = {"CANADA-1": "https://ca1.obj.nexgencloud.io"}
"""Where the object storage of each region is; Source: the API's reference lists one region, 2026-11."""

_SERVICE = Service(
    provider="hyperstack",
    title="Hyperstack",
    base_url="https://infrahub-api.nexgencloud.com/v1",
    url_variable="HYPERSTACK_API_URL",
)
_PATH = "/object-storage/access-keys"


@frozen(kw_only=True)
class HyperstackKeys:
    """
    Make a pair of keys when it is called, and delete it when it is not needed any more.

    Args:
        api_key: The account's API key, or what returns it.
        region: The region that the keys are for.
    """

    api_key: Secret = field(repr=False)
    region: str

    async def __call__(self) -> Keys:
        """
        Make a pair of keys.

        Raises:
            CredentialsError: If the API key is refused.
        """
        wanted = {"region": self.region, "description": "skyward"}
        answer = await self._api().post(_PATH, json=wanted, subject="an access key")
        try:
            return Keys(
                access_key=text(answer, "access_key"),
                secret_key=text(answer, "secret_key"),
                id=str(whole(answer, "id")),
            )
        except Misread as error:
            # The answer may hold a key, so it is not shown.
            raise CredentialsError(
                f"Hyperstack answered with no pair of keys: {error}.", provider="hyperstack"
            ) from None

    async def release(self, keys: Keys) -> None:
        """
        Delete a pair of keys; one that is gone already is no error.

        Args:
            keys: Those that were made here.
        """
        await self._api().delete(f"{_PATH}/{keys.id}", also=(404,))

    def _api(self) -> Api:
        return Api(_SERVICE.located(os.environ), self._login)

    async def _login(self, _stale: Login | None) -> Login:
        given = self.api_key if isinstance(self.api_key, str) else self.api_key()
        key = given if isinstance(given, str) else await given
        return Login(headers={"api_key": key}, account=key, secrets=(key,))
