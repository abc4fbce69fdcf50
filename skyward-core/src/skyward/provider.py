"""
What a provider is made of: the one place that a distribution with a provider imports from.

Its names stay; where they are defined inside of Skyward may change.
`docs/write-a-provider.md` shows a whole provider, `skyward.testing.conformance` checks one.
"""

from __future__ import annotations

# Work that blocks, such as a library that waits for its answers.
from skyward.blocking import in_thread

# What a provider raises.
from skyward.errors import (
    CapacityError,
    ConfigError,
    CredentialsError,
    Limited,
    NoCredentialsError,
    ProvisionError,
    QuotaError,
    SkywardError,
)

# The hooks, and the values that they take and return.
from skyward.hookspecs import (
    BucketStorage,
    Cluster,
    Instance,
    InstanceState,
    LaunchRequest,
    LocalAddress,
    MachineImage,
    Offer,
    ProviderFacts,
    SSHAddress,
    Tags,
    hookimpl,
)

# What users write, read and checked.
from skyward.model.accelerators.accelerator import recognise
from skyward.model.fields.memory import gigabytes
from skyward.model.fields.port import port, ssh_port
from skyward.model.fields.region import RegionsLike, regions, several
from skyward.model.fields.setting import choice, nearest, positive, suggesting, switch, text as text_setting
from skyward.model.instances.key_pair import KeyPair
from skyward.model.spec.container import DockerImage, cuda, docker_image, runpod_base
from skyward.model.spec.spec import Architecture, Spec

# A machine's first boot, and a container's start.
from skyward.plan.bootstrap.container_start import END_COMMAND, container_start
from skyward.plan.bootstrap.first_boot import (
    HostKey,
    boot_deadline,
    boot_watchdogs,
    cloud_config,
    first_contact,
    host_key,
)
from skyward.plan.instances.clocks import ahead_of_reply

# Disks that the user keeps at the cloud.
from skyward.plan.offers.cloud_disk import CloudDisk, buckets_of, chosen, disks_of, mount_disk, mount_share

# Accounts, what clouds tell of machines, creating machines and finding them, disks.
from skyward.providers.account_hooks import AccountHooks
from skyward.providers.bucket_keys import with_keys
from skyward.providers.call_batch import CallBatch, rented
from skyward.providers.created import Created, Inventory, of_pool, of_token
from skyward.providers.credentials import Credential
from skyward.providers.disks import Disks
from skyward.providers.facts import by_id, facts, identified, sold
from skyward.providers.host_pins import HostPins
from skyward.providers.key_account import KeyAccount
from skyward.providers.known_names import check_places, unknown_name
from skyward.providers.labels import escaped, fitting, node_number, unescaped
from skyward.providers.life import life
from skyward.providers.registration import Registered, key_material, registered
from skyward.providers.together import together

# Calls of an API that speaks JSON over HTTP, and how its answers are read; httpx is loaded with the first call.
from skyward.rest import (
    Api,
    ErrorRow,
    Joined,
    Limit,
    Login,
    Meaning,
    Misread,
    Reply,
    Service,
    Shared,
    Token,
    TokenLogin,
    by_cursor,
    by_link,
    end_for_good,
    field,
    flag,
    hidden,
    is_lost,
    listed,
    meaning_by,
    moment,
    number,
    objects,
    optional,
    readable,
    reply_of,
    text,
    unless,
    whole,
    word,
)

# Shell scripts that lie beside a provider's modules.
from skyward.shell_files import shell_file

__all__ = [
    "AccountHooks",
    "Api",
    "Architecture",
    "BucketStorage",
    "CallBatch",
    "CapacityError",
    "CloudDisk",
    "Cluster",
    "ConfigError",
    "Created",
    "Credential",
    "CredentialsError",
    "Disks",
    "DockerImage",
    "END_COMMAND",
    "ErrorRow",
    "HostKey",
    "HostPins",
    "Instance",
    "InstanceState",
    "Inventory",
    "Joined",
    "KeyAccount",
    "KeyPair",
    "LaunchRequest",
    "Limit",
    "Limited",
    "LocalAddress",
    "Login",
    "MachineImage",
    "Meaning",
    "Misread",
    "NoCredentialsError",
    "Offer",
    "ProviderFacts",
    "ProvisionError",
    "QuotaError",
    "RegionsLike",
    "Registered",
    "Reply",
    "SSHAddress",
    "Service",
    "Shared",
    "SkywardError",
    "Spec",
    "Tags",
    "Token",
    "TokenLogin",
    "ahead_of_reply",
    "boot_deadline",
    "boot_watchdogs",
    "buckets_of",
    "by_cursor",
    "by_id",
    "by_link",
    "check_places",
    "choice",
    "chosen",
    "cloud_config",
    "container_start",
    "cuda",
    "disks_of",
    "docker_image",
    "end_for_good",
    "escaped",
    "facts",
    "field",
    "first_contact",
    "fitting",
    "flag",
    "gigabytes",
    "hidden",
    "hookimpl",
    "host_key",
    "identified",
    "in_thread",
    "is_lost",
    "key_material",
    "life",
    "listed",
    "meaning_by",
    "moment",
    "mount_disk",
    "mount_share",
    "nearest",
    "node_number",
    "number",
    "objects",
    "of_pool",
    "of_token",
    "optional",
    "port",
    "positive",
    "readable",
    "recognise",
    "regions",
    "registered",
    "rented",
    "reply_of",
    "runpod_base",
    "several",
    "shell_file",
    "sold",
    "ssh_port",
    "suggesting",
    "switch",
    "text",
    "text_setting",
    "together",
    "unescaped",
    "unknown_name",
    "unless",
    "whole",
    "with_keys",
    "word",
]
