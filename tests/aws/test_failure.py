"""Each code of AWS means one of our errors, and whether the call is sent again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from botocore.retries.standard import RetryContext, ThrottledRetryableChecker, TransientRetryableChecker

from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError, SkywardError
from skyward_aws.failure import AT_MOST, UNANSWERED, Refusal, code_of, failure, pause


def refusal(code: str, status: int = 400, **facts: object) -> Refusal:
    """Make what AWS answered to a launch."""
    given = {"message": "Told so.", "service": "ec2", "operation": "RunInstances", "region": "us-east-1", **facts}
    return Refusal(code=code, status=status, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "status", "kind", "again"),
    [
        ("InsufficientInstanceCapacity", 500, CapacityError, False),
        ("InsufficientFreeAddressesInSubnet", 400, CapacityError, False),
        ("Unsupported", 400, CapacityError, False),
        ("SpotMaxPriceTooLow", 400, CapacityError, False),
        ("MaxSpotInstanceCountExceeded", 400, QuotaError, False),
        ("VcpuLimitExceeded", 400, QuotaError, False),
        ("InstanceLimitExceeded", 400, QuotaError, False),
        ("VolumeLimitExceeded", 400, QuotaError, False),
        ("RequestLimitExceeded", 503, ProvisionError, True),
        ("ThrottlingException", 400, ProvisionError, True),
        ("", 429, ProvisionError, True),
        ("InternalError", 500, ProvisionError, True),
        ("Unavailable", 503, ProvisionError, True),
        ("Whatever", 502, ProvisionError, True),
        ("", 0, ProvisionError, True),
        ("UnauthorizedOperation", 403, CredentialsError, False),
        ("AccessDeniedException", 400, CredentialsError, False),
        ("AuthFailure", 401, CredentialsError, False),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403, CredentialsError, False),
        ("ExpiredToken", 400, CredentialsError, False),
        ("OptInRequired", 401, CredentialsError, False),
        ("InvalidParameterValue", 400, ConfigError, False),
        ("InvalidAMIID.NotFound", 400, ConfigError, False),
        ("IdempotentParameterMismatch", 400, ProvisionError, False),
    ],
)
def test_a_code_means_one_error(code: str, status: int, kind: type[SkywardError], again: bool) -> None:
    """The error is of the right class, tells code, operation and place, and only what may pass is tried again."""
    given = refusal(code, status)
    error = failure(given)
    assert kind is type(error)
    assert code == code_of(error)
    for word in (code, "RunInstances", "us-east-1", "Told so"):
        assert word in str(error)
    assert again is (pause(given, 1) is not None)


def test_boto3s_own_retries_are_others() -> None:
    """They send a launch again that EC2 has no capacity for, and not what is refused for its rate by status alone."""
    both = [("InsufficientInstanceCapacity", 500), ("TooManyRequests", 429)]
    answers = [({"Error": {"Code": code}}, SimpleNamespace(status_code=status, headers={})) for code, status in both]
    contexts = [RetryContext(1, parsed_response=parsed, http_response=http) for parsed, http in answers]
    theirs = [TransientRetryableChecker().is_retryable(each) for each in contexts]
    theirs = [one or ThrottledRetryableChecker().is_retryable(each) for one, each in zip(theirs, contexts, strict=True)]
    assert [True, False] == theirs
    assert [False, True] == [pause(refusal(code, status), 1) is not None for code, status in both]


def test_pauses_grow_and_end() -> None:
    """Each pause is at least half of the longest it may be, they double, and the last attempt is the last."""
    throttled = refusal("RequestLimitExceeded", 503)
    for attempt in range(1, AT_MOST):
        longest = min(20.0, 2.0 ** (attempt - 1))
        assert longest / 2 <= (pause(throttled, attempt) or 0) <= longest
    assert pause(throttled, AT_MOST) is None
    assert pause(refusal("", 0), UNANSWERED) is None


def test_what_aws_asks_to_wait_is_waited_within_bounds() -> None:
    """Retry-After is a lower bound, and no call waits for an hour."""
    assert (pause(refusal("", 429, retry_after=7.0), 1) or 0) >= 7.0
    assert (pause(refusal("", 429, retry_after=3600.0), 1) or 0) <= 20.0


def test_a_missing_permission_is_written_as_the_policy_has_it() -> None:
    """The service and the operation make the name of the permission."""
    error = failure(refusal("AccessDeniedException", 400, service="ssm", operation="GetParameter"))
    assert "ssm:GetParameter" in str(error)
