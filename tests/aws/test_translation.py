"""What EC2 says in its own words, in ours; and what we say, in its words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve

from skyward.errors import ConfigError
from skyward.model.accelerators import accelerator_factories as accelerators
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.key_pair import KeyPair
from skyward.model.instances.machine import InstanceState, LaunchRequest, SSHAddress
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.plan.bootstrap.first_boot import HostKey
from skyward_aws import AWS
from skyward_aws.catalogue import prices, spot_prices, to_offer, useful
from skyward_aws.instances import Door, described
from skyward_aws.launching import zones_in_order
from skyward_aws.machine_image import RootDisk, parameter, root_disk
from skyward_aws.order import Order, client_token, parameters
from skyward_aws.place import Place, missing_rules
from skyward_aws.user_data import user_data

PLACE = Place(region="us-east-1", vpc="vpc-1", subnets={"us-east-1a": "s-a"}, group="sg-1", own_group=True, port=22)


def type_row(name: str, **facts: Any) -> dict[str, Any]:
    """Describe an instance type as EC2 does."""
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16384},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        **facts,
    }


def gpu(name: str, count: int, mib: int, share: float = 1.0) -> dict[str, Any]:
    """Describe accelerators as EC2 does."""
    device = {"Name": name, "Count": count, "MemoryInfo": {"SizeInMiB": mib}, "GpuPartitionSize": share}
    return {"GpuInfo": {"Gpus": [device]}}


@pytest.mark.parametrize(
    ("row", "wanted", "fits"),
    [
        (type_row("g5.xlarge", **gpu("A10G", 1, 22888)), "A10G", True),
        (type_row("g5.xlarge", **gpu("A10G", 1, 22888)), "A10G-24GB", True),
        (type_row("p4d.24xlarge", **gpu("A100", 8, 40960)), "A100-80GB", False),
        (type_row("p4d.24xlarge", **gpu("A100", 8, 40960)), "A100", True),
        (type_row("p4de.24xlarge", **gpu("A100", 8, 81920)), "A100", True),
        (type_row("p4d.24xlarge", **gpu("A100", 8, 40960)), accelerators.A100(), False),
        (type_row("p4d.24xlarge", **gpu("A100", 8, 40960)), "A100-40GB:8", True),
        (type_row("p5en.48xlarge", **gpu("H200", 8, 144384)), "H200:8", True),
        (type_row("p6-b200.48xlarge", **gpu("B200", 8, 183359)), "B200:8", True),
        (type_row("g7e.2xlarge", **gpu("RTX PRO Server 6000", 1, 98304)), "RTX_PRO_6000", True),
        (type_row("g6f.large", **gpu("L4", 0, 2861, 0.125)), "L4", False),
        (type_row("m7i.large"), "L4", False),
        (
            type_row(
                "trn1.2xlarge",
                NeuronInfo={"NeuronDevices": [{"Name": "Trainium", "Count": 1, "MemoryInfo": {"SizeInMiB": 32768}}]},
            ),
            "Trainium1",
            True,
        ),
        (
            type_row(
                "inf1.xlarge",
                InferenceAcceleratorInfo={
                    "Accelerators": [{"Name": "Inferentia", "Count": 1, "MemoryInfo": {"SizeInMiB": 8192}}]
                },
            ),
            "Inferentia1",
            True,
        ),
    ],
    ids=lambda value: value["InstanceType"] if isinstance(value, dict) else str(value),
)
def test_accelerators_are_known_under_their_names(row: dict[str, Any], wanted: str, fits: bool) -> None:
    """A type meets a spec by the name and memory of its accelerators, whatever EC2 reports of them."""
    assert fits is useful(row, Spec(accelerator=wanted))


def test_a_slice_of_a_card_counts_as_its_share() -> None:
    """An eighth of a card is no whole one, and not none."""
    offer = to_offer(type_row("g6f.large", **gpu("L4", 0, 2861, 0.125)), "us-east-1", 0.2, None)
    assert offer is not None
    assert 0.125 == offer.accelerator_count


def test_a_mac_is_no_node() -> None:
    """A type of an architecture that we do not speak is no offer."""
    row = type_row("mac2.metal", ProcessorInfo={"SupportedArchitectures": ["arm64_mac"]})
    assert to_offer(row, "us-east-1", 1.0, None) is None


def test_a_price_of_nothing_is_none() -> None:
    """Rows with a price of zero stand for reserved capacity."""
    terms = {str(at): {"priceDimensions": {"x": {"pricePerUnit": {"USD": usd}}}} for at, usd in enumerate(("1.5", "0"))}
    entry = {"product": {"attributes": {"instanceType": "g5.xlarge"}}, "terms": {"OnDemand": terms}}
    assert {"g5.xlarge": 1.5} == prices([json.dumps(entry)])


@pytest.mark.parametrize(
    ("name", "accelerator", "architecture", "part"),
    [
        ("m7i.large", None, "x86_64", "canonical/ubuntu/server/24.04/stable/current/amd64/"),
        ("m7g.large", None, "arm64", "canonical/ubuntu/server/24.04/stable/current/arm64/"),
        ("g5.xlarge", "A10G", "x86_64", "deeplearning/ami/x86_64/"),
        ("g5g.xlarge", "T4g", "arm64", "deeplearning/ami/arm64/"),
        ("trn1.2xlarge", "Trainium", "x86_64", "neuron/"),
        ("g4ad.xlarge", "Radeon Pro V520", "x86_64", "canonical/"),
    ],
)
def test_an_image_goes_with_a_type(name: str, accelerator: str | None, architecture: Any, part: str) -> None:
    """Drivers are there where they are needed, and the architecture is spelled as each of them does."""
    offer = Offer(
        provider="aws",
        instance_type=name,
        architecture=architecture,
        accelerator_name=accelerator,
        accelerator_count=1 if accelerator else 0,
    )
    assert part in parameter(offer)


def test_old_cards_want_an_image_of_the_users() -> None:
    """No public image drives a V100, which is said before it costs anything."""
    offer = Offer(provider="aws", instance_type="p3dn.24xlarge", accelerator_name="V100", accelerator_count=8)
    with pytest.raises(ConfigError, match=r"V100 of p3dn\.24xlarge"):
        parameter(offer)


def test_the_disk_is_as_large_as_the_image_wants() -> None:
    """The root device's own size counts, not that of another disk."""
    disks = [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 45}},
        {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 900}},
    ]
    row = {"ImageId": "ami-1", "RootDeviceName": "/dev/xvda", "BlockDeviceMappings": disks}
    assert RootDisk(image="ami-1", device="/dev/xvda", least_gb=45) == root_disk(row)


def request(**changes: Any) -> LaunchRequest:
    """Ask for a machine."""
    offer = Offer(provider="aws", instance_type="g5.xlarge", region="us-east-1", on_demand_price=1.0)
    cluster = Cluster(pool_id="p1", pool_name="train", spec=Spec(), offer=offer, provider="aws", nodes=2)
    return LaunchRequest(**{"cluster": cluster, "nodes": (0, 1), "token": "t1", **changes})


def order(asked: LaunchRequest, place: Place = PLACE, **changes: Any) -> Order:
    """Hold what the machines of a launch have in common."""
    door = Door(user="ubuntu", port=22, key=asked.cluster.key)
    disk = RootDisk(image="ami-1", device="/dev/sda1", least_gb=30)
    return Order(**{"request": asked, "place": place, "disk": disk, "door": door, **changes})


def test_a_launch_says_the_same_when_it_is_sent_again() -> None:
    """Parameters of one request, node and zone are equal, so that EC2 takes the second for the first."""
    asked = request()
    again = evolve(asked, token="t1")
    assert parameters(order(asked), 0, "us-east-1a") == parameters(order(again), 0, "us-east-1a")


def test_launches_that_differ_have_tokens_that_differ() -> None:
    """Request, node, zone, market and group all count, and a token is as long as EC2 allows."""
    asked, closed = request(), evolve(PLACE, group="sg-2")
    tokens = [
        client_token(order(asked), 0, "us-east-1a"),
        client_token(order(asked), 1, "us-east-1a"),
        client_token(order(asked), 0, "us-east-1b"),
        client_token(order(evolve(asked, token="t2")), 0, "us-east-1a"),
        client_token(order(evolve(asked, spot=True)), 0, "us-east-1a"),
        client_token(order(asked, closed), 0, "us-east-1a"),
    ]
    assert len(tokens) == len(set(tokens))
    assert {64} == {len(token) for token in tokens}


@pytest.mark.parametrize(("profile", "key"), [("reader", "Name"), ("arn:aws:iam::1:instance-profile/reader", "Arn")])
def test_a_profile_is_a_name_or_an_arn(profile: str, key: str) -> None:
    """EC2 wants to be told which."""
    assert {key: profile} == parameters(order(request(), profile=profile), 0, "us-east-1a")["IamInstanceProfile"]


def test_zones_above_the_cap_are_left_out() -> None:
    """The cheapest comes first, and what costs more than allowed not at all."""
    place = evolve(PLACE, subnets={"a": "1", "b": "2", "c": "3"})
    found = zones_in_order(place, frozenset("abc"), {"a": 0.3, "b": 0.1, "c": 0.2}, 0.25)
    assert ("b", "c") == found


def test_a_group_is_opened_only_where_it_is_closed() -> None:
    """Rules that are there are not asked for again, and a tunnel needs no port."""
    between = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}
    ssh = {
        "IpProtocol": "tcp",
        "FromPort": 22,
        "ToPort": 22,
        "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
        "UserIdGroupPairs": [],
    }
    assert [] == missing_rules("sg-1", [between, ssh], 22)
    assert ["tcp"] == [rule["IpProtocol"] for rule in missing_rules("sg-1", [between, ssh], 2222)]
    assert [] == missing_rules("sg-1", [between], None)


@pytest.mark.parametrize(("deadline", "commands"), [(600.0, 1), (0.0, 0)])
def test_user_data_fits_and_disarms_only_when_told(deadline: float, commands: int) -> None:
    """A machine ends itself unasked, unless the user wants none of that."""
    text = user_data("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "private"), "ubuntu", deadline)
    config = json.loads(text.removeprefix("#cloud-config\n"))
    assert ["ssh-ed25519 AAAA skyward"] == config["ssh_authorized_keys"]
    assert commands == len(config.get("runcmd", ()))
    assert config["disable_root"]


def row(state: str, **facts: Any) -> dict[str, Any]:
    """Describe a machine as EC2 does."""
    tags = {"skyward:pool": "p1", "skyward:node": "2", "skyward:token": "t1", "Name": "x"}
    return {
        "InstanceId": "i-1",
        "State": {"Name": state},
        "InstanceType": "g5.xlarge",
        "LaunchTime": datetime(2026, 1, 2, tzinfo=UTC),
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        **facts,
    }


@pytest.mark.parametrize(
    ("state", "life"),
    [
        ("pending", InstanceState.PENDING),
        ("running", InstanceState.RUNNING),
        ("shutting-down", InstanceState.ENDING),
        ("stopping", InstanceState.ENDING),
        ("stopped", InstanceState.ENDING),
        ("rebalancing", InstanceState.ENDING),
        ("terminated", InstanceState.ENDED),
    ],
)
def test_a_state_means_one_of_ours(state: str, life: InstanceState) -> None:
    """Only a machine that runs has an address, and only one that is terminated costs nothing."""
    door = Door(user="ubuntu", port=22, key=KeyPair())
    instance = described(row(state, PublicIpAddress="192.0.2.1"), "us-east-1", door)
    assert life is instance.state
    assert (life is InstanceState.RUNNING) is isinstance(instance.address, SSHAddress)
    assert (2, "p1") == (instance.node, instance.tags and instance.tags.pool_id)


@pytest.mark.parametrize(
    ("state", "said", "wanted"),
    [
        ("terminated", {"StateReason": {"Code": "Server.X", "Message": "Server.X: Why"}}, "Server.X: Why"),
        ("shutting-down", {"StateReason": {"Code": "Server.X"}}, "Server.X"),
        (
            "stopped",
            {"StateTransitionReason": "User initiated (2026-01-02 03:04:05 GMT)"},
            "User initiated (2026-01-02 03:04:05 GMT)",
        ),
        ("terminated", {"StateReason": "odd"}, None),
        ("terminated", {"StateTransitionReason": ""}, None),
        ("running", {"StateReason": {"Code": "Server.X", "Message": "Server.X: Why"}}, None),
    ],
)
def test_the_reason_of_an_end_is_what_ec2_says(state: str, said: dict[str, Any], wanted: str | None) -> None:
    """The message where there is one, else the code; a machine that runs needs none."""
    assert wanted == described(row(state, **said), "us-east-1").reason


def test_a_machine_without_an_address_does_not_run_yet() -> None:
    """The state may come before the address."""
    door = Door(user="ubuntu", port=22, key=KeyPair())
    assert InstanceState.PENDING is described(row("running"), "us-east-1", door).state


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"region": 7}, "region must be"),
        ({"region": ["us-east-1", ""]}, "region must be"),
        ({"ssh_port": 0}, "ssh_port must be"),
        ({"access_key": "AKIA"}, "go together"),
        ({"access_key": "AKIA", "secret_key": "x", "use_ssm": True}, "use_ssm=True needs"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    """The field is named."""
    with pytest.raises(ConfigError, match=words):
        AWS(**settings)


def test_secrets_are_in_no_text() -> None:
    """The repr tells regions, and no key."""
    shown = repr(AWS(region="us-east-1", access_key="AKIAHIDDEN", secret_key="hidden", session_token="hidden"))
    assert "us-east-1" in shown
    assert "hidden" not in shown.lower()


@pytest.mark.parametrize(("user", "first"), [("ubuntu", "sudo"), ("root", "shutdown")])
def test_a_machine_ends_itself_as_who_may(user: str, first: str) -> None:
    """A user other than root asks sudo, which asks for no password."""
    facts = AWS(user=user).skyward_facts()
    assert (first, True) == (facts.end_command[0], facts.ends_own_bill)
    assert (1.0, 60.0) == (facts.billing_granularity_s, facts.minimum_billed_s)


def test_a_price_that_cannot_be_read_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """Of the price list, and of the spot market."""

    def entry(name: str, price: object) -> str:
        dimensions = {"1": {"pricePerUnit": {"USD": price}}}
        product = {"attributes": {"instanceType": name}}
        return json.dumps({"product": product, "terms": {"OnDemand": {"1": {"priceDimensions": dimensions}}}})

    listed = [entry("a", "1.5"), entry("b", "a lot"), "{", entry("c", "-1"), entry("d", "0.0"), entry("e", "nan"), "{}"]
    assert {"a": 1.5} == prices(listed)
    history = [{"InstanceType": name, "AvailabilityZone": "z", "SpotPrice": price} for name, price in
               (("a", "0.5"), ("b", "a lot"), ("c", "inf"))]  # fmt: skip
    assert {"a": {"z": 0.5}} == spot_prices([*history, {"InstanceType": "d"}])
    assert 5 + 3 == len([line for line in caplog.messages if "offer.unreadable provider=aws" in line])
