"""
The user's own modules, as files that travel to the nodes.

`LocalModules` finds what is loaded here and installed nowhere; `includes` reads what `Image.includes` names.

What travels by itself: each loaded module with a file outside the standard library, `site-packages`, the virtual
environment and Skyward, placed by its module name; and the other files that lie directly in the folder of a loaded
package, as long as they are less than 1 MiB together. Everything else goes by `includes`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from attrs import define, field, frozen

from skyward.errors import ConfigError

_FILE_LIMIT: Final = 64 * 1024 * 1024
_TOTAL_LIMIT: Final = 512 * 1024 * 1024
_DATA_LIMIT: Final = 1024 * 1024

SKIPPED: Final = frozenset(
    {"__pycache__", ".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {".hypothesis", ".ipynb_checkpoints", ".DS_Store", "node_modules"}
)
CODE: Final = (".py", ".pyc", ".pyo", ".so", ".pyd")


@frozen(kw_only=True)
class ModuleFile:
    """
    Hold one file for the nodes.

    Args:
        path: Where it goes, relative to a folder that workers import from, with forward slashes.
        digest: SHA-256 of its contents.
        data: Its contents.
    """

    path: str
    digest: bytes = field(repr=bytes.hex)
    data: bytes = field(repr=False, eq=False)


def _patterns(given: Iterable[str]) -> tuple[str, ...]:
    """
    Return glob patterns as a tuple.
    """
    return tuple(given)


@define(eq=False)
class LocalModules:
    """
    Find the files of the user's loaded modules.

    Args:
        excludes: Glob patterns for paths on the node that do not travel; one without a slash matches at any depth.
    """

    excludes: tuple[str, ...] = field(default=(), converter=_patterns)
    _lock: threading.Lock = field(factory=threading.Lock, init=False, repr=False)
    _marker: tuple[int, str] = field(default=(-1, ""), init=False, repr=False)
    _scanned: tuple[int, str] = field(default=(-1, ""), init=False, repr=False)
    # Modules by name with the files they had when those were taken.
    _taken: dict[str, str] = field(factory=dict, init=False, repr=False)
    # Path on the node: path here, and what was read there.
    _files: dict[str, tuple[Path, ModuleFile]] = field(factory=dict, init=False, repr=False)
    _unsent: dict[str, ModuleFile] = field(factory=dict, init=False, repr=False)
    _packages: dict[str, Path] = field(factory=dict, init=False, repr=False)

    def new_files(self, deliver: Callable[[tuple[ModuleFile, ...]], object] | None = None) -> tuple[ModuleFile, ...]:
        """
        Return the files of modules loaded since the last call, each once.

        Nearly free where nothing was loaded meanwhile.

        Args:
            deliver: Called with the files, if there are any, before another thread is answered that nothing is new:
                what that thread sends afterwards comes behind these files.

        Raises:
            ConfigError: A module's file is larger than 64 MiB.
        """
        try:
            if self._marker == (len(sys.modules), next(reversed(sys.modules))):
                return ()
        except RuntimeError:
            # Another thread imports at this moment.
            pass
        with self._lock:
            marker = _marker_now()
            self._scan()
            files = tuple(self._unsent[path] for path in sorted(self._unsent))
            if files and deliver is not None:
                deliver(files)
            self._unsent.clear()
            self._marker = marker
            return files

    def all_files(self) -> tuple[ModuleFile, ...]:
        """
        Return the files of all modules loaded by now, for a node that has none.

        Raises:
            ConfigError: A module's file is larger than 64 MiB.
        """
        with self._lock:
            self._scan()
            return tuple(self._files[path][1] for path in sorted(self._files))

    def refresh(self) -> tuple[ModuleFile, ...]:
        """
        Read the files again and return those that changed, or were added to a package, since they were read.

        Raises:
            ConfigError: A module's file is larger than 64 MiB.
        """
        with self._lock:
            changed = {}
            known = {path: file for path, (file, _) in self._files.items()}
            for name, folder in self._packages.items():
                known.update(_package_data(name, folder))
            for path, file in known.items():
                fresh = self._take(path, file)
                if fresh is not None:
                    changed[path] = fresh
            return tuple(changed[path] for path in sorted(changed))

    def _scan(self) -> None:
        marker = _marker_now()
        if marker == self._scanned:
            return
        for name, module in loaded_modules().items():
            file = _file_of(module)
            if file is None or self._taken.get(name) == file:
                continue
            if _is_local(name, file):
                for path, source in _placed(name, Path(file)):
                    fresh = self._take(path, source)
                    if fresh is not None:
                        self._unsent[path] = fresh
                    if path.endswith("/__init__.py"):
                        self._packages[name] = Path(file).parent
            self._taken[name] = file
        self._scanned = marker

    def _take(self, path: str, file: Path) -> ModuleFile | None:
        """
        Read a file and return it where it is not known as it is.
        """
        if excluded(path, self.excludes):
            return None
        try:
            fresh = read_file(path, file)
        except OSError:
            # The file went away after it was imported: what was read before, if anything, is all there is.
            return None
        if path in self._files and self._files[path][1] == fresh:
            return None
        self._files[path] = (file, fresh)
        return fresh


def loaded_modules() -> dict[str, ModuleType]:
    """
    Return the loaded modules by name, as they are at this moment; other threads may import meanwhile.
    """
    while True:
        try:
            return sys.modules.copy()
        except RuntimeError:
            continue


def _marker_now() -> tuple[int, str]:
    while True:
        try:
            return len(sys.modules), next(reversed(sys.modules))
        except RuntimeError:
            continue


def _file_of(module: ModuleType) -> str | None:
    # Lazy modules load themselves at the first plain access to any attribute.
    try:
        file = object.__getattribute__(module, "__dict__").get("__file__")
    except Exception:  # anything may lie in sys.modules
        return None
    if not isinstance(file, str):
        return None
    return file if file.startswith("/") else str(Path(file).absolute())


def _is_local(name: str, file: str) -> bool:
    """
    Return whether a module is the user's own and lies in a file of its own.
    """
    top = name.partition(".")[0]
    if top in ("__main__", "__mp_main__", "skyward") or top.startswith("skyward_"):
        return False
    if file.startswith(_foreign_folders()) or "/site-packages/" in file or "/dist-packages/" in file:
        return False
    path = Path(file)
    return not str(path.resolve()).startswith(_foreign_folders()) and path.is_file()


@functools.cache
def _foreign_folders() -> tuple[str, ...]:
    """
    List the folders of the standard library and the virtual environment.
    """
    import sysconfig

    folders = {Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")), Path(os.__file__).parent}
    if sys.prefix != sys.base_prefix:
        folders.add(Path(sys.prefix))
    return tuple(f"{folder}/" for folder in folders | {folder.resolve() for folder in folders})


def _placed(name: str, file: Path) -> Iterator[tuple[str, Path]]:
    """
    Yield the paths on the node of a module's file and of its package's data, with the paths here.
    """
    from importlib.machinery import all_suffixes

    parts = name.split(".")
    # The longest first: ".so" ends them all.
    suffix = next((end for end in sorted(all_suffixes(), key=len, reverse=True) if file.name.endswith(end)), None)
    if suffix is None or any(part in ("", ".", "..") or "/" in part for part in parts):
        return
    if file.name == f"__init__{suffix}" and parts[-1] != "__init__":
        yield "/".join((*parts, f"__init__{suffix}")), file
        yield from _package_data(name, file.parent).items()
    else:
        yield "/".join(parts) + suffix, file


def _package_data(name: str, folder: Path) -> dict[str, Path]:
    """
    List the small files beside a package's modules, none where they are 1 MiB or more together.

    Links that lead out of the folder are passed over.
    """
    found, total = {}, 0
    try:
        real = folder.resolve()
        for file in folder.iterdir():
            if file.is_symlink() and not file.resolve().is_relative_to(real):
                continue
            if not file.name.startswith(".") and file.suffix not in CODE and file.is_file():
                found["/".join((*name.split("."), file.name))] = file
                total += file.stat().st_size
    except OSError:
        return {}
    return found if total < _DATA_LIMIT else {}


def read_file(path: str, file: Path) -> ModuleFile:
    """
    Read a file for the nodes.

    Args:
        path: Where it goes there.
        file: Where it is here.

    Raises:
        ConfigError: It is larger than 64 MiB.
    """
    size = file.stat().st_size
    if size > _FILE_LIMIT:
        raise ConfigError(
            f"The file {str(file)!r} has {size / 2**20:.0f} MiB; code travels in files up to {_FILE_LIMIT >> 20} MiB.",
            hint=f"Add {path!r} to the image's excludes; install packages with pip, and keep data on a volume.",
        )
    data = file.read_bytes()
    return ModuleFile(path=path, digest=hashlib.sha256(data).digest(), data=data)


def excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """
    Return whether a path, or a folder it lies in, matches one of the patterns.
    """
    from fnmatch import fnmatchcase

    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    for pattern in patterns:
        wanted = pattern.removeprefix("./").rstrip("/")
        if "/" not in wanted:
            candidates = parts
        elif wanted.startswith("**/"):
            wanted, candidates = f"*/{wanted[3:]}", [f"/{one}" for one in above]
        else:
            candidates = above
        if any(fnmatchcase(one, wanted.removesuffix("/**")) for one in candidates):
            return True
    return False
