"""Machine images of our own: made from a machine, found by what they hold, booted, deleted with their snapshots."""

from __future__ import annotations

import boto3
import pytest

from skyward_aws.account import Account, Login
from skyward_aws.machine_image import create_image, delete_image, images
from tests.clouds.aws.client import client, run
from tests.clouds.aws.cloud import Cloud

pytestmark = pytest.mark.clouds


def test_an_image_lives_from_its_machine_to_its_deletion(aws: Cloud) -> None:
    """It is listed by the hash, a machine boots from it, and its snapshot goes with it."""

    async def scenario() -> None:
        account = Account(Login())
        async with client(aws.provider()) as opened:
            [machine] = await opened.launch()
            name = await create_image(account, "us-east-1", machine.id, "4f1e")
            assert [name] == [row["ImageId"] for row in await images(account, "us-east-1", "4f1e")]
            assert name in {row["ImageId"] for row in await images(account, "us-east-1")}
            assert [] == await images(account, "us-east-1", "other")
        async with client(aws.provider(ami=name)) as opened:
            await opened.launch()
            assert [name] == [row["image"] for row in aws.alive()]
        ec2 = boto3.client("ec2", region_name="us-east-1")
        before = {row["SnapshotId"] for row in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]}
        await delete_image(account, "us-east-1", name)
        await delete_image(account, "us-east-1", name)
        after = {row["SnapshotId"] for row in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]}
        assert [] == await images(account, "us-east-1", "4f1e")
        assert 1 == len(before - after)

    run(scenario())
