"""How EC2 says what every cloud says."""

from __future__ import annotations

from skyward.errors import CapacityError, CredentialsError, QuotaError
from tests.clouds.aws.client import client
from tests.clouds.aws.cloud import Cloud, cloud
from tests.clouds.renting.dialect import Dialect, refused

_QUOTA = "You have requested more vCPU capacity than your current vCPU limit"


def _reach_the_quota(aws: Cloud) -> None:
    aws.fault("RunInstances", code="VcpuLimitExceeded", message=_QUOTA, times=1)


DIALECT = Dialect(
    name="aws",
    cloud=cloud,
    client=client,
    launch="RunInstances",
    sent="ec2:RunInstances",
    end="TerminateInstances",
    list="DescribeInstances",
    broken={"code": "InternalError", "status": 500},
    throttled={"code": "RequestLimitExceeded", "status": 503},
    refusals=(
        refused(CapacityError, code="InsufficientInstanceCapacity", status=500),
        refused(QuotaError, code="VcpuLimitExceeded", message=_QUOTA),
        refused(CredentialsError, code="UnauthorizedOperation", status=403),
    ),
    kept={"code": "OperationNotPermitted", "message": "The instance may not be terminated."},
    command="aws ec2 terminate-instances",
    shorten=_reach_the_quota,
    left=2,
    repeats=True,
    expiry=lambda row: row["tags"]["skyward:expires"],
    garbled={"launchTime": ("yesterday", "LaunchTime")},
    garble=lambda aws, machine, fields: aws.ask("fault", {"garble": machine}),
    odd=lambda aws, machine, word: aws.ask("state", {"id": machine, "name": word}),
    unknown="i-0123456789abcdef0",
    wrong={"access_key": "AKIAWRONG", "secret_key": "wrong-secret"},
    without=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
)
