"""One region of an account, whose machines and prices are its own: EC2 is asked there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from attrs import frozen

from skyward.provider import Inventory
from skyward_aws.account import Account

__all__ = ["Region", "everywhere"]

T = TypeVar("T")


@frozen
class Region:
    """
    Ask EC2 in one region.

    Args:
        account: Who asks.
        name: Such as `"us-east-1"`.
    """

    account: Account
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def inventory(self) -> Inventory[Mapping[str, Any]]:
        """Return the machines that were rented here."""
        return self.account.inventories[self.name]

    async def call(self, operation: str, subject: str = "", *, service: str = "ec2", **parameters: Any) -> Any:
        """
        Make one call, as `Account.call` does.

        Args:
            operation: As AWS calls it, such as `"RunInstances"`.
            subject: What it is about, for the error.
            service: Another than EC2.
            parameters: As AWS calls them.

        Raises:
            SkywardError: If it is refused.
        """
        return await self.account.call(service, self.name, operation, subject, **parameters)

    async def pages(
        self, operation: str, key: str, where: Mapping[str, Sequence[str]] | None = None, **parameters: Any
    ) -> list[Any]:
        """
        Make a call that answers page by page, and return what all of them list.

        Args:
            operation: As AWS calls it, such as `"DescribeInstances"`.
            key: Name of the list in the answer.
            where: The values that are looked for, by the names of EC2's filters; None for no filter.
            parameters: As AWS calls them.

        Raises:
            SkywardError: If it is refused.
        """
        filters = [{"Name": name, "Values": list(values)} for name, values in (where or {}).items()]
        named = {"Filters": filters} if filters else {}
        return await self.account.pages("ec2", self.name, operation, key, **named, **parameters)

    async def kept(self, what: tuple[object, ...], seconds: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """
        Return an answer that holds for a while, asked for where there is none.

        Args:
            what: What is asked.
            seconds: How old the answer may be.
            ask: Asks for it.
        """
        return await self.account.answers.ask((self.name, *what), seconds, ask)


async def everywhere(home: Region, ask: Callable[[Region], Awaitable[Sequence[T]]]) -> list[T]:
    """
    Ask in every region that the account uses, and return what all of them list.

    Args:
        home: A region that the account can use, which knows the others.
        ask: Asks in one.

    Raises:
        SkywardError: If one gives no answer: what is there would be overlooked.
    """
    rows = (await home.call("DescribeRegions"))["Regions"]
    answers = await asyncio.gather(*(ask(Region(home.account, row["RegionName"])) for row in rows))
    return [each for answer in answers for each in answer]
