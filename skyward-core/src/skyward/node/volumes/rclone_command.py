"""What rclone is called with: its words, and its environment, where the keys are."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from skyward.node.agent.descendants import MARK
from skyward.node.volumes.volume_order import VolumeOrder

__all__ = [
    "WHOLE_UP_TO_MIB",
    "check_words",
    "compare_words",
    "delete_words",
    "environment",
    "fetch_words",
    "list_words",
    "mount_words",
    "pull_words",
    "push_words",
    "source",
]

REMOTE = "bucket"
"""What the store is called in rclone's settings, which are variables and no file."""

TRANSFERS = 32
"""Files that are copied at once: most of the time of a small one is spent waiting."""

_ANSWERS = ("--contimeout", "15s", "--timeout", "60s")
_KINDS = {
    "amazonaws.com": "AWS",
    "amazonaws.com.cn": "AWS",
    "r2.cloudflarestorage.com": "Cloudflare",
    "digitaloceanspaces.com": "DigitalOcean",
    "wasabisys.com": "Wasabi",
    "storage.googleapis.com": "GCS",
}
"""What rclone calls the stores whose differences from Amazon's it knows."""

_NAMES_HOSTS = {
    "AWS": {"list_version": "2", "list_url_encode": "true"},
    "Wasabi": {"list_version": "2", "list_url_encode": "true"},
    "DigitalOcean": {"list_version": "2"},
    "GCS": {
        "list_version": "2",
        "list_url_encode": "true",
        # Google changes this header on its way.
        "sign_accept_encoding": "false",
        "use_accept_encoding_gzip": "false",
        "use_x_id": "false",
    },
}
"""Kinds of which rclone puts the bucket into the host, whatever it is asked for, and how one of no kind equals them."""

WHOLE_UP_TO_MIB = 200
"""MiB of the largest file that is sent in one request; its answer has the checksum of what arrived."""

_WRITE_BACK = "1s"
_LISTED_FOR = "10s"


def environment(order: VolumeOrder, base: Mapping[str, str]) -> dict[str, str]:
    """
    Return the variables that rclone finds the store and its keys by; no process list and no file has them.

    Args:
        order: The volume.
        base: The environment of the process that starts it.

    >>> order = VolumeOrder(bucket="b-1", mount="/d", endpoint="http://h:1", region="x", access_key="k", secret_key="s")
    >>> environment(order, {"RCLONE_CONFIG_PASS": "other"})["RCLONE_CONFIG_BUCKET_SECRET_ACCESS_KEY"]
    's'
    """
    ours = {name: text for name, text in base.items() if not name.startswith("RCLONE_") and name != MARK}
    settings = {
        "type": "s3",
        **_addressing(order),
        "endpoint": order.endpoint,
        "region": order.region,
        # It would make a bucket that is not there.
        "no_check_bucket": "true",
    }
    if order.access_key is not None:
        ours = {name: text for name, text in ours.items() if not name.startswith("AWS_")}
    if order.access_key is None or order.expires_at is not None:
        # Where AWS's own tools look; for keys that end, that is the server of keys.
        settings["env_auth"] = "true"
    else:
        settings |= {"access_key_id": order.access_key, "secret_access_key": order.secret_key or ""}
        if order.session_token:
            settings["session_token"] = order.session_token
    ours["RCLONE_CONFIG"] = "/dev/null"
    return ours | {f"RCLONE_CONFIG_{REMOTE.upper()}_{name.upper()}": text for name, text in settings.items()}


def source(order: VolumeOrder) -> str:
    """
    Return what rclone calls the bucket's folder.

    >>> source(VolumeOrder(bucket="b-1", prefix="a/", mount="/d", endpoint="http://h:1", region="x"))
    'bucket:b-1/a'
    """
    return f"{REMOTE}:{order.bucket}/{order.prefix}".rstrip("/")


def check_words(order: VolumeOrder) -> list[str]:
    """
    Return the words that list the bucket's objects, page by page, and try only once.

    Args:
        order: The volume.
    """
    once = ("--retries", "1", "--low-level-retries", "1", "--contimeout", "10s", "--timeout", "20s")
    return ["lsf", "--recursive", "--fast-list", "--files-only", *once, source(order)]


def mount_words(order: VolumeOrder, *, cache: str, cache_bytes: int, version: tuple[int, ...]) -> list[str]:
    """
    Return the words that mount the bucket's folder, in the foreground.

    Args:
        order: The volume.
        cache: The folder for what was read and what is not yet written.
        cache_bytes: What that may hold of what was read.
        version: rclone's version.
    """
    words = ["mount", source(order), order.mount, "--cache-dir", cache, "--vfs-cache-mode", "full"]
    words += ["--vfs-cache-max-size", f"{cache_bytes}B", "--vfs-cache-max-age", "24h", "--vfs-write-back", _WRITE_BACK]
    words += ["--dir-cache-time", _LISTED_FOR, "--attr-timeout", "1s", "--poll-interval", "0"]
    # A question for each file, for a time that the listing has as well.
    words += ["--use-server-modtime", "--vfs-fast-fingerprint"]
    words += ["--buffer-size", "16M", "--vfs-read-ahead", "64M", "--vfs-read-chunk-size", "32M"]
    if version >= (1, 68):
        words += ["--vfs-read-chunk-streams", "8"]
    words += ["--transfers", str(TRANSFERS), "--log-level", "NOTICE", *_ANSWERS]
    return [*words, "--read-only"] if order.read_only else words


def pull_words(order: VolumeOrder) -> list[str]:
    """
    Return the words that copy the bucket's folder to an empty one.

    Args:
        order: The volume.
    """
    quick = ["--fast-list", "--use-server-modtime", "--no-check-dest", "--multi-thread-streams", "8"]
    return ["copy", source(order), order.mount, *quick, *_copying()]


def list_words(order: VolumeOrder) -> list[str]:
    """
    Return the words that list the bucket's objects with their sizes and times, by no request but for the pages.

    Args:
        order: The volume.
    """
    quick = ["--recursive", "--files-only", "--fast-list", "--no-mimetype", "--use-server-modtime"]
    return ["lsjson", source(order), *quick, *_copying()]


def fetch_words(order: VolumeOrder, listed: str, folder: str, *, few: bool) -> list[str]:
    """
    Return the words that copy some objects of the bucket's folder to an empty one.

    Args:
        order: The volume.
        listed: The file that lists them, one a line.
        folder: The folder that they are copied to.
        few: Whether they are asked for one by one, rather than picked out of a listing.
    """
    quick = ["--no-traverse" if few else "--fast-list", "--use-server-modtime", "--no-check-dest"]
    return ["copy", source(order), folder, "--files-from-raw", listed, *quick, *_copying()]


def compare_words(order: VolumeOrder, listed: str, same: str, other: str) -> list[str]:
    """
    Return the words that compare checksums of files and their objects, which a listing has.

    Args:
        order: The volume.
        listed: The file that lists them, one a line.
        same: A file for the names of those that are alike.
        other: A file for the names of those that are not.
    """
    words = ["check", order.mount, source(order), "--files-from-raw", listed, "--fast-list", "--one-way"]
    return [*words, "--match", same, "--differ", other, *_copying()]


def push_words(order: VolumeOrder, listed: str, *, largest: int) -> list[str]:
    """
    Return the words that copy files to the bucket's folder, whatever is there.

    Args:
        order: The volume.
        listed: The file that lists them, one a line.
        largest: Bytes of the largest of them.
    """
    words = ["copy", order.mount, source(order), "--files-from-raw", listed, "--no-check-dest"]
    words += ["--s3-upload-cutoff", f"{WHOLE_UP_TO_MIB}M", *_copying()]
    # An object that was sent in parts has no checksum in its answer: the store is asked what it has.
    return [*words, "--s3-no-head"] if largest < WHOLE_UP_TO_MIB << 20 else words


def delete_words(order: VolumeOrder, listed: str) -> list[str]:
    """
    Return the words that remove files from the bucket's folder.

    Args:
        order: The volume.
        listed: The file that lists them, one a line.
    """
    return ["delete", source(order), "--files-from-raw", listed, "--no-traverse", *_copying()]


def _copying() -> list[str]:
    return ["--transfers", str(TRANSFERS), "--checkers", str(TRANSFERS), "--retries", "3", *_ANSWERS]


def _addressing(order: VolumeOrder) -> dict[str, str]:
    """
    Return the settings that put the bucket into the path of a request, or into the name of its host.

    >>> order = VolumeOrder(bucket="b-1", mount="/d", endpoint="https://s3.example.org", region="x")
    >>> _addressing(order)
    {'provider': 'Other', 'force_path_style': 'false'}
    """
    kind, host = _kind(order.endpoint), urlsplit(order.endpoint).hostname or ""
    # An address has no names below it, and a certificate is for no dots: as boto3 decides.
    if not (order.path_style or _is_address(host) or "." in order.bucket):
        return {"provider": kind, "force_path_style": "false"}
    if kind in _NAMES_HOSTS:
        return {"provider": "Other", "force_path_style": "true", **_NAMES_HOSTS[kind]}
    return {"provider": kind, "force_path_style": "true"}


def _is_address(host: str) -> bool:
    """
    Return whether a host is given by its address.

    >>> _is_address("127.0.0.1"), _is_address("::1"), _is_address("s3.example.org")
    (True, True, False)
    """
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _kind(endpoint: str) -> str:
    """
    Return what rclone calls a store.

    >>> _kind("https://s3.eu-central-1.amazonaws.com"), _kind("http://127.0.0.1:8333")
    ('AWS', 'Other')
    """
    host = urlsplit(endpoint).hostname or ""
    return next((kind for name, kind in _KINDS.items() if host == name or host.endswith(f".{name}")), "Other")
