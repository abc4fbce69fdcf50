"""`sky.Storage`: an object store that speaks S3, as a value, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Self

from attrs import Attribute, Factory, field, fields, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import lasting, switch, text, whole
from skyward_storage.bucket_transfer import BucketTransfer
from skyward_storage.checksum import Checksum
from skyward_storage.downloading import Downloader
from skyward_storage.given import bucket_name, endpoint_url, key_prefix, object_key, source_path, target_path
from skyward_storage.keys import Keys, KeySource, Login, Secret, secret
from skyward_storage.line import Line
from skyward_storage.listing import found, listed, removed, removed_below
from skyward_storage.parts import LARGEST_PART, MIB
from skyward_storage.transfer import Progress, Transfer, in_thread
from skyward_storage.uploading import Uploader, files_of

__all__ = ["Storage"]

LEAST_PART = 5 * MIB
"""Bytes of the smallest part that S3 takes."""


def _secret(instance: Any, attribute: Attribute[Any], value: object) -> None:
    if value is not None:
        secret(value, attribute.name)


def _callable(instance: Any, attribute: Attribute[Any], value: object) -> None:
    if value is not None and not callable(value):
        raise ConfigError(f"{attribute.name} must be a function that returns Keys, not {type(value).__name__}.")


def _known(instance: Any, attribute: Attribute[Any], value: object) -> None:
    if value not in ("CRC32", "MD5", None):
        raise ConfigError(f'{attribute.name} must be "CRC32", "MD5" or None, not {value!r}.')


def _part_size(value: object) -> int:
    size = whole(value, "part_size", least=LEAST_PART)
    if size > LARGEST_PART:
        raise ConfigError(f"part_size must be {LARGEST_PART} bytes at most, not {size}.")
    return size


def _timeout(value: object) -> float:
    return lasting(value, "timeout")


def _region(value: object) -> str | None:
    return None if value is None else text(value, "region")


def _line_of(storage: Storage) -> Line:
    """Return what sends the requests of a storage; nothing is sent yet."""
    login = Login(
        access_key=storage.access_key,
        secret_key=storage.secret_key,
        session_token=storage.session_token,
        source=storage.keys,
    )
    return Line(storage.endpoint, storage.region, path_style=storage.path_style, login=login, timeout=storage.timeout)


@frozen
class Storage:
    """
    Hold an object store that speaks S3; `sky.storage` has presets for several providers.

    It is used as it is, or as a context manager, which closes its connections. Nothing is sent before the first
    operation. Pickles hold the settings, keys that are text and functions among them; a repr shows no key.

    Args:
        endpoint: Its address, such as `"https://s3.example.org"`.
        access_key: Id of the key: text, or a function or coroutine function that returns it. None for where AWS's own
            tools look: variables, `~/.aws`, the role of this machine.
        secret_key: The key itself, likewise.
        path_style: Whether the bucket stands in the path of a request, and not in the name of the host.
        session_token: Token of a temporary session, likewise.
        keys: A function or coroutine function that returns all of them at once, as `Keys`.
        region: The region that requests are signed for; None for what AWS's own tools are set to, else `"us-east-1"`.
        checksum: What uploads carry for the server to check: `"CRC32"`, S3's own; `"MD5"`, the header Content-MD5, for
            servers that do not know that; None for nothing.
        part_size: Bytes from which files go in parts, and of each part.
        timeout: Seconds to wait for the next bytes of an answer.

    Raises:
        ConfigError: If a setting cannot be.

    >>> Storage("https://s3.example.org", "id", "hidden", path_style=True)
    Storage(endpoint='https://s3.example.org', path_style=True)
    """

    endpoint: str = field(converter=endpoint_url)
    access_key: Secret | None = field(default=None, validator=_secret)
    secret_key: Secret | None = field(default=None, validator=_secret)
    path_style: bool = field(default=False, validator=switch)
    session_token: Secret | None = field(default=None, validator=_secret, kw_only=True)
    keys: KeySource | None = field(default=None, validator=_callable, kw_only=True)
    region: str | None = field(default=None, converter=_region, kw_only=True)
    checksum: Checksum | None = field(default="CRC32", validator=_known, kw_only=True)
    part_size: int = field(default=8 * MIB, converter=_part_size, kw_only=True)
    timeout: float = field(default=60.0, converter=_timeout, kw_only=True)
    _line: Line = field(init=False, eq=False, default=Factory(_line_of, takes_self=True))

    def __repr__(self) -> str:
        """Return what tells stores apart, without any key."""
        region = "" if self.region is None else f", region={self.region!r}"
        return f"Storage(endpoint={self.endpoint!r}, path_style={self.path_style}{region})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out connections, which are opened where the value arrives."""
        return _rebuilt, ({each.name: getattr(self, each.name) for each in fields(type(self)) if each.init},)

    def __enter__(self) -> Self:
        """Return the storage itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close its connections."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the storage itself."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close its connections."""
        await in_thread(lambda _: self.close(), Transfer())

    def close(self) -> None:
        """Close connections and forget the keys; the next operation opens them again."""
        self._line.close()

    def credentials(self) -> Keys:
        """
        Return the keys that requests are signed with now; functions and AWS's own places are asked.

        Raises:
            CredentialsError: If there are none.

        >>> Storage("https://s3.example.org", "id", lambda: "hidden").credentials().secret_key
        'hidden'
        """
        return self._line.keys()

    async def credentials_async(self) -> Keys:
        """Return what `credentials` does, without blocking the event loop."""
        return await in_thread(lambda _: self._line.keys(), Transfer())

    def upload(
        self,
        bucket: str,
        local_path: str | PathLike[str],
        *,
        key: str | None = None,
        progress: Progress | None = None,
        resume: bool = True,
    ) -> None:
        """
        Upload a file, or all files of a folder.

        A large file goes in parts. Those of an earlier upload of the same object that was broken off, and that are as
        they are here, are not sent again.

        Args:
            bucket: The bucket.
            local_path: The file or folder.
            key: The object; of a folder, what the keys begin with. None for the name of the file or folder.
            progress: Called with bytes done, bytes in all and the key, never twice at the same time, from any thread.
            resume: Whether parts are kept for a later upload where this one is broken off, and those kept are used.

        Raises:
            ConfigError: If an argument cannot be; nothing was sent then.
            NoSuchBucketError: If there is no such bucket.
            CredentialsError: If there are no keys, or they are refused.
            StorageError: If it is refused otherwise, or not answered.

        Example: `storage.upload("my-bucket", "model.pt", key="checkpoints/model.pt")`
        """
        self._uploading(bucket, local_path, key, resume)(Transfer(progress))

    async def upload_async(
        self,
        bucket: str,
        local_path: str | PathLike[str],
        *,
        key: str | None = None,
        progress: Progress | None = None,
        resume: bool = True,
    ) -> None:
        """Upload as `upload` does, without blocking the event loop; cancelled, it stops at the next step."""
        await in_thread(self._uploading(bucket, local_path, key, resume), Transfer(progress))

    def download(
        self, bucket: str, key: str, local_path: str | PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """
        Download an object to a file, or all objects of a prefix that ends with a slash into a folder.

        A large object goes in ranges to NAME.part, from where a download that was broken off goes on as long as the
        object is the same. The file is in its place when it is whole, at once.

        Args:
            bucket: The bucket.
            key: The object, or the prefix.
            local_path: The file, or a folder that is there or ends with a slash.
            progress: As for `upload`.

        Raises:
            ConfigError: If an argument cannot be, or an object would be written outside of the folder.
            NoSuchBucketError: If there is no such bucket.
            NoSuchKeyError: If there is no such object.
            CredentialsError: If there are no keys, or they are refused.
            ChecksumError: If the bytes are not those that the server declares.
            StorageError: If it is refused otherwise, or not answered.

        Example: `storage.download("my-bucket", "checkpoints/model.pt", "local/model.pt")`
        """
        self._downloading(bucket, key, local_path)(Transfer(progress))

    async def download_async(
        self, bucket: str, key: str, local_path: str | PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Download as `download` does, without blocking the event loop; cancelled, it stops at the next step."""
        await in_thread(self._downloading(bucket, key, local_path), Transfer(progress))

    def ls(self, bucket: str, prefix: str = "") -> list[str]:
        """
        List the keys of a bucket, all of them, in their order.

        Args:
            bucket: The bucket.
            prefix: What they begin with.

        Raises:
            ConfigError: If an argument cannot be.
            NoSuchBucketError: If there is no such bucket.
            CredentialsError: If there are no keys, or they are refused.
            StorageError: If it is refused otherwise, or not answered.

        Example: `storage.ls("my-bucket", prefix="checkpoints/")`
        """
        return self._listing(bucket, prefix)(Transfer())

    async def ls_async(self, bucket: str, prefix: str = "") -> list[str]:
        """List as `ls` does, without blocking the event loop."""
        return await in_thread(self._listing(bucket, prefix), Transfer())

    def exists(self, bucket: str, key: str) -> bool:
        """
        Return whether an object is there; for a prefix that ends with a slash, whether any is below it.

        Args:
            bucket: The bucket.
            key: The object, or the prefix.

        Raises:
            ConfigError: If an argument cannot be.
            NoSuchBucketError: If there is no such bucket.
            CredentialsError: If there are no keys, or they are refused.
            StorageError: If it is refused otherwise, or not answered.

        Example: `storage.exists("my-bucket", "checkpoints/model.pt")`
        """
        return self._finding(bucket, key)(Transfer())

    async def exists_async(self, bucket: str, key: str) -> bool:
        """Return what `exists` does, without blocking the event loop."""
        return await in_thread(self._finding(bucket, key), Transfer())

    def rm(self, bucket: str, key: str, *, recursive: bool = False) -> None:
        """
        Remove an object, or all below a prefix; what is not there is no error.

        Args:
            bucket: The bucket.
            key: The object, or the prefix.
            recursive: Whether it is a prefix: all objects below `key/` are removed.

        Raises:
            ConfigError: If an argument cannot be, such as a prefix without `recursive=True`.
            NoSuchBucketError: If there is no such bucket.
            CredentialsError: If there are no keys, or they are refused.
            StorageError: If it is refused otherwise, or not answered.

        Example: `storage.rm("my-bucket", "checkpoints/", recursive=True)`
        """
        self._removing(bucket, key, recursive)(Transfer())

    async def rm_async(self, bucket: str, key: str, *, recursive: bool = False) -> None:
        """Remove as `rm` does, without blocking the event loop."""
        await in_thread(self._removing(bucket, key, recursive), Transfer())

    # What each operation does once its arguments were checked; plain and async methods share it.

    def _uploading(
        self,
        bucket: str,
        local_path: str | PathLike[str],
        key: str | None,
        resume: bool,  # noqa: FBT001
    ) -> Callable[[Transfer], None]:
        place, source = bucket_name(bucket), source_path(local_path)
        wanted = None if key is None else object_key(key)
        files = files_of(source, wanted)

        def job(transfer: Transfer) -> None:
            Uploader(at=self._at(place, transfer), resume=resume).upload(files)

        return job

    def _downloading(self, bucket: str, key: str, local_path: str | PathLike[str]) -> Callable[[Transfer], None]:
        place, wanted = bucket_name(bucket), object_key(key)
        target = target_path(local_path, wanted)

        def job(transfer: Transfer) -> None:
            downloader = Downloader(at=self._at(place, transfer))
            (downloader.download_below if wanted.endswith("/") else downloader.download)(wanted, target)

        return job

    def _at(self, bucket: str, transfer: Transfer) -> BucketTransfer:
        return BucketTransfer(
            line=self._line, transfer=transfer, bucket=bucket, part_size=self.part_size, checksum=self.checksum
        )

    def _listing(self, bucket: str, prefix: str) -> Callable[[Transfer], list[str]]:
        place, wanted = bucket_name(bucket), key_prefix(prefix)
        return lambda transfer: [each.key for page in listed(self._line, transfer, place, wanted) for each in page]

    def _finding(self, bucket: str, key: str) -> Callable[[Transfer], bool]:
        place, wanted = bucket_name(bucket), object_key(key)
        return lambda transfer: found(self._line, transfer, place, wanted)

    def _removing(self, bucket: str, key: str, recursive: bool) -> Callable[[Transfer], None]:  # noqa: FBT001
        place, wanted = bucket_name(bucket), object_key(key)
        if recursive:
            prefix = f"{wanted.rstrip('/')}/"
            if prefix == "/":
                raise ConfigError("key must name a prefix, not the whole bucket.")
            return lambda transfer: removed_below(self._line, transfer, place, prefix)
        if wanted.endswith("/"):
            raise ConfigError(f"key {wanted!r} is a prefix.", hint="Write recursive=True to remove all below it.")
        return lambda transfer: removed(self._line, transfer, place, wanted)


def _rebuilt(settings: dict[str, Any]) -> Storage:
    """Return a storage by its settings."""
    return Storage(**settings)
