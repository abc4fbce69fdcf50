"""The published policy allows what is done, and nothing that is not."""

from __future__ import annotations

import json
import re

import pytest

from tests.clouds.aws.client import client, run
from tests.clouds.aws.cloud import ROOT, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def published() -> set[str]:
    """Read the actions that the documentation asks to be allowed."""
    page = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    return {action for statement in json.loads(text)["Statement"] for action in statement["Action"]}


def test_the_published_policy_is_enough_and_no_more_than_needed(aws: Cloud) -> None:
    """A cloud that allows exactly that is used in every way; every action that is allowed was needed."""
    aws.allow(sorted(published()))

    async def scenario() -> None:
        provider = aws.provider(region="eu-west-1")
        async with client(provider) as opened:
            [instance] = await opened.launch(spot=True)
            await opened.launch(*range(1, 10))
            await provider.skyward_renew(opened.cluster, opened.infra, [instance.id], 1900000000.0)
            await provider.skyward_check_end(opened.infra, [instance.id])
            await opened.until(lambda found: all(each.address is not None for each in found))
            await provider.skyward_make_machine_image(opened.cluster, opened.infra, instance, "4f1e")
            await provider.skyward_delete_machine_images(await provider.skyward_machine_images(opened.cluster))
            await provider.skyward_end(await provider.skyward_owned())
            until(lambda: all(row["state"] == "terminated" for row in aws.instances()))

    run(scenario())
    needed = {action for call in aws.calls() for action in call["needs"]} - {"sts:GetCallerIdentity"}
    assert published() == needed
    assert "skyward" not in aws.groups("eu-west-1")
