"""Where buckets are that a volume gives no storage for: network volumes, which RunPod also serves over S3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skyward.provider import BucketStorage, CloudDisk, ConfigError, with_keys

__all__ = ["KEY", "SECRET", "bucket_storage"]

# The S3 API has keys of its own, made in the console: docs.runpod.io, S3-compatible API, "Create an S3 API key". The
# names are those of the tool that RunPod's documents name for it: Runpod Network Volume Storage Tool, 2026.
KEY, SECRET = "RUNPOD_S3_ACCESS_KEY", "RUNPOD_S3_SECRET_KEY"


def bucket_storage(
    buckets: Sequence[str], volumes: Sequence[CloudDisk], environment: Mapping[str, str]
) -> BucketStorage:
    """
    Return the S3 endpoint of the data centre in which network volumes are.

    Args:
        buckets: The buckets, which are ids of network volumes.
        volumes: Those network volumes, as they were found by id or name.
        environment: The variables in which the keys are.

    Raises:
        ConfigError: If one is not written by its id, or they are in several data centres.
        CredentialsError: If a key is missing.

    >>> volume = CloudDisk(id="agv6w2qcg7", name="data", place="EU-RO-1")
    >>> found = bucket_storage(["agv6w2qcg7"], [volume], {KEY: "user_x", SECRET: "rps_x"})
    >>> found.endpoint, found.region
    ('https://s3api-eu-ro-1.runpod.io', 'EU-RO-1')
    """
    for bucket, volume in zip(buckets, volumes, strict=True):
        if bucket != volume.id:
            raise ConfigError(
                f"The bucket of the network volume {volume.title} is called by its id.",
                provider="runpod",
                hint=f'Write sky.Volume("{volume.id}", ...), or sky.Disk("{bucket}") to have it mounted by RunPod.',
            )
    places = sorted({volume.place for volume in volumes})
    if len(places) != 1:
        raise ConfigError(
            f"The network volumes {', '.join(buckets)} are in {' and '.join(places)}, whose S3 APIs are not the same.",
            provider="runpod",
            hint='Give each its storage=sky.Storage("https://s3api-DATACENTER.runpod.io", ...).',
        )
    # `https://s3api-[DATACENTER].runpod.io/`, with the bucket in the path and the data centre as the region:
    # docs.runpod.io, S3-compatible API, 2026. Only some data centres have it.
    endpoint = f"https://s3api-{places[0].lower()}.runpod.io"
    return with_keys(
        BucketStorage(endpoint=endpoint, region=places[0], path_style=True),
        (KEY, SECRET),
        environment,
        "A volume without storage is a network volume of RunPod, whose S3 API has keys of its own",
        provider="runpod",
        hint="Make one in RunPod's console under Settings, S3 API Keys, or give the volume its storage=.",
    )
