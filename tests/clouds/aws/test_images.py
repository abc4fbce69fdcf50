"""Machine images of our own: made from a machine, found by what they hold, booted, deleted with their snapshots."""

from __future__ import annotations

import asyncio

import boto3
import pytest

from skyward.errors import CredentialsError
from skyward_aws.account import Account, Login
from skyward_aws.own_images import Base, create_image, delete_image, images
from skyward_aws.region import Region, everywhere
from tests.clouds.aws.client import client, refusal, run
from tests.clouds.aws.cloud import Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

BASE = Base(image="ubuntu", user="root")


def snapshots() -> set[str]:
    """List the snapshots of the account."""
    ec2 = boto3.client("ec2", region_name="us-east-1")
    return {row["SnapshotId"] for row in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]}


def test_an_image_lives_from_its_machine_to_its_deletion(aws: Cloud) -> None:
    """It is listed by its hash and base, a machine boots from it, and its snapshot goes with it."""

    async def scenario() -> None:
        region = Region(Account(Login()), "us-east-1")
        async with client(aws.provider()) as opened:
            [machine] = await opened.launch()
            await opened.until(lambda found: found[0].address is not None)
            made = await create_image(region, machine.id, "4f1e", BASE)
            [listed] = await images(region, BASE)
            assert (made.id, "4f1e", "ready") == (listed.id, listed.content_hash, listed.state)
            assert listed.made_at is not None
            assert listed.size_gb
            assert [listed] == await everywhere(region, images)
            assert [] == await images(region, Base(image="ubuntu", user="ubuntu"))
            assert [] == await images(region, Base(image="other", user="root"))
        async with client(aws.provider(ami=made.id)) as opened:
            await opened.launch()
            assert [made.id] == [row["image"] for row in aws.alive()]
        before = snapshots()
        await delete_image(region, made.id)
        await delete_image(region, made.id)
        assert [] == await images(region)
        assert 1 == len(before - snapshots())

    run(scenario())


def test_the_same_is_made_once(aws: Cloud) -> None:
    """However many clients ask for it at the same time; AWS has a name once."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            [machine] = await opened.launch()
            await opened.until(lambda found: found[0].address is not None)
            made = await asyncio.gather(
                *(create_image(Region(Account(Login()), "us-east-1"), machine.id, "5e", BASE) for _ in range(3))
            )
            other = await create_image(
                Region(Account(Login()), "us-east-1"), machine.id, "5e", Base(image="x", user="root")
            )
            assert 1 == len({image.id for image in made})
            assert {made[0].id, other.id} == set(aws.images())

    run(scenario())


def test_an_answer_that_was_lost_is_found(aws: Cloud) -> None:
    """The image was made, and is made once."""
    aws.fault("CreateImage", "cut", times=1)

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            [machine] = await opened.launch()
            await opened.until(lambda found: found[0].address is not None)
            made = await create_image(Region(Account(Login()), "us-east-1"), machine.id, "6d", BASE)
            assert [made.id] == aws.images()

    run(scenario())


def test_a_refusal_names_the_permission(aws: Cloud) -> None:
    """And says where to look."""
    aws.fault("CreateImage", code="UnauthorizedOperation", status=403)

    async def scenario() -> None:
        error = await refusal(create_image(Region(Account(Login()), "us-east-1"), "i-1", "7c", BASE))
        assert isinstance(error, CredentialsError)
        assert "ec2:CreateImage" in str(error)

    run(scenario())
