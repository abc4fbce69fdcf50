"""
The user's own modules, as files that travel to the nodes.

`LocalModules` finds what is loaded here and installed nowhere; `include_files` reads what `Image.includes` names.

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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from attrs import define, field, frozen

from skyward.errors import ConfigError

_FILE_LIMIT: Final = 64 * 1024 * 1024
_TOTAL_LIMIT: Final = 512 * 1024 * 1024
_DATA_LIMIT: Final = 1024 * 1024

_SKIPPED: Final = frozenset(
    {"__pycache__", ".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {".hypothesis", ".ipynb_checkpoints", ".DS_Store", "node_modules"}
)
_CODE: Final = (".py", ".pyc", ".pyo", ".so", ".pyd")


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


@define(eq=False)
class LocalModules:
    """
    Find the files of the user's loaded modules.

    Args:
        excludes: Glob patterns for paths on the node that do not travel; one without a slash matches at any depth.
    """

    excludes: tuple[str, ...] = field(default=(), converter=tuple)
    _lock: threading.Lock = field(factory=threading.Lock, init=False, repr=False)
    _marker: tuple[int, str] = field(default=(-1, ""), init=False, repr=False)
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
            deliver: Called with the files, if there are any, before another thread is told that nothing is new:
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
        for name, module in _loaded().items():
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

    def _take(self, path: str, file: Path) -> ModuleFile | None:
        """
        Read a file and return it where it is not known as it is.
        """
        if _excluded(path, self.excludes):
            return None
        try:
            fresh = _read(path, file)
        except OSError:
            # The file went away after it was imported: what was read before, if anything, is all there is.
            return None
        if path in self._files and self._files[path][1] == fresh:
            return None
        self._files[path] = (file, fresh)
        return fresh


def _loaded() -> dict[str, ModuleType]:
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
    """
    found, total = {}, 0
    try:
        for file in folder.iterdir():
            if not file.name.startswith(".") and file.suffix not in _CODE and file.is_file():
                found["/".join((*name.split("."), file.name))] = file
                total += file.stat().st_size
    except OSError:
        return {}
    return found if total < _DATA_LIMIT else {}


def _read(path: str, file: Path) -> ModuleFile:
    size = file.stat().st_size
    if size > _FILE_LIMIT:
        raise ConfigError(
            f"The file {str(file)!r} has {size / 2**20:.0f} MiB; code travels in files up to {_FILE_LIMIT >> 20} MiB.",
            hint=f"Add {path!r} to the image's excludes; install packages with pip, and keep data on a volume.",
        )
    data = file.read_bytes()
    return ModuleFile(path=path, digest=hashlib.sha256(data).digest(), data=data)


def _excluded(path: str, patterns: tuple[str, ...]) -> bool:
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


# What the image includes ----------------------------------------------------------------------------------------------


def include_files(
    includes: tuple[str, ...], excludes: tuple[str, ...] = (), base: str | os.PathLike[str] = "."
) -> tuple[ModuleFile, ...]:
    """
    Read what an image includes, laid out so that imports find it.

    A folder with an `__init__.py` travels as that package, below the packages it lies in.
    Any other folder that holds Python files somewhere is taken as a place to import from: what is in it can be imported
    under its own name (`["./src"]`), unless the folder is a namespace package that is loaded here.
    A folder without Python files is data, and keeps its path from `base`.
    A file in a package keeps its place there; any other Python file can be imported by its name; any other file
    keeps its path from `base`. A folder or file outside `base` keeps its name instead.
    Caches, `.git`, `.venv` and every virtual environment stay behind.

    Args:
        includes: Files, folders and glob patterns (`configs/*.yaml`, `src/**/*.py`).
        excludes: Glob patterns for paths from `base` or on the node; one without a slash matches at any depth.
        base: The folder that relative paths start from.

    Raises:
        ConfigError: Nothing is there, two files would have one path, or there is more than 64 MiB in one file
            or 512 MiB in all.

    >>> include_files(())
    ()
    """
    top = _absolute(Path(base))
    found: dict[str, Path] = {}
    for include in includes:
        for path, file in _included(include, top):
            if _excluded(path, excludes) or _excluded("/".join(_near(file, top)), excludes):
                continue
            other = found.setdefault(path, file)
            if other != file and not other.samefile(file) and _read(path, other) != _read(path, file):
                raise ConfigError(f"includes has two files for {path!r} on the node: {str(other)!r} and {str(file)!r}.")
    return _read_all(found)


def _read_all(found: dict[str, Path]) -> tuple[ModuleFile, ...]:
    files, total = [], 0
    for path in sorted(found):
        try:
            files.append(_read(path, found[path]))
        except OSError as error:
            raise ConfigError(
                f"includes names {str(found[path])!r}, which cannot be read: {error.strerror}."
            ) from error
        total += len(files[-1].data)
        if total > _TOTAL_LIMIT:
            raise ConfigError(
                f"includes has more than {_TOTAL_LIMIT >> 20} MiB in all.",
                hint="Leave data out with excludes, and keep it on a volume.",
            )
    return tuple(files)


def _absolute(path: Path) -> Path:
    # Links stay as they are written: their names are the names of packages.
    return Path(os.path.normpath(path.expanduser().absolute()))


def _included(include: str, top: Path) -> Iterator[tuple[str, Path]]:
    """
    Yield the paths on the node of what one entry of `includes` names, with the paths here.
    """
    whole = _absolute(top / Path(include).expanduser())
    if whole.is_dir():
        yield from _folder(whole, top)
    elif whole.is_file():
        yield from _file(whole, top)
    else:
        matches = _matches(whole)
        if not matches:
            raise ConfigError(f"includes names {include!r}, but {str(whole)!r} does not exist.", hint=_nearest(whole))
        for match in matches:
            if match.is_file() and _SKIPPED.isdisjoint(_near(match, top)):
                yield from _file(match, top)
            elif match.is_dir() and "**" not in include and match.name not in _SKIPPED:
                yield from _folder(match, top)


def _matches(pattern: Path) -> list[Path]:
    fixed = next((part for part in pattern.parents if not set("*?[").intersection(str(part))), pattern)
    return sorted(fixed.glob(str(pattern.relative_to(fixed)))) if set("*?[").intersection(str(pattern)) else []


def _nearest(missing: Path) -> str | None:
    from difflib import get_close_matches

    beside = [file.name for file in missing.parent.iterdir()] if missing.parent.is_dir() else []
    close = get_close_matches(missing.name, beside, n=1)
    return f"Did you mean {close[0]!r}?" if close else None


def _file(file: Path, top: Path) -> Iterator[tuple[str, Path]]:
    package, root = _packages_around(file.parent)
    if package:
        yield from _inits(package, root)
        yield "/".join((*package, file.name)), file
    else:
        yield file.name if file.suffix in _CODE else "/".join(_near(file, top)), file


def _folder(folder: Path, top: Path) -> Iterator[tuple[str, Path]]:
    package, root = _packages_around(folder)
    files = list(_walk(folder))
    if package:
        yield from _inits(package, root)
        prefix = package
    elif any(file.suffix in _CODE for file in files):
        prefix = _namespace(folder)
    else:
        prefix = _near(folder, top)
    for file in files:
        yield "/".join((*prefix, *file.relative_to(folder).parts)), file


def _near(path: Path, top: Path) -> tuple[str, ...]:
    return path.relative_to(top).parts if path.is_relative_to(top) else (path.name,)


def _packages_around(folder: Path) -> tuple[tuple[str, ...], Path]:
    """
    Return the names of the packages that a folder is in or is, outermost first, and the folder they lie in.
    """
    names: list[str] = []
    while (folder / "__init__.py").is_file() and folder.name:
        names.insert(0, folder.name)
        folder = folder.parent
    return tuple(names), folder


def _inits(package: tuple[str, ...], root: Path) -> Iterator[tuple[str, Path]]:
    for count in range(1, len(package) + 1):
        path = "/".join((*package[:count], "__init__.py"))
        yield path, root / path


def _namespace(folder: Path) -> tuple[str, ...]:
    """
    Return the name of the loaded namespace package that a folder is, empty where it is none.
    """
    for name, module in _loaded().items():
        try:
            space = object.__getattribute__(module, "__dict__")
            if space.get("__file__") is None and folder in map(Path, space.get("__path__", ())):
                return tuple(name.split("."))
        except Exception:  # anything may lie in sys.modules
            continue
    return ()


def _walk(folder: Path) -> Iterator[Path]:
    """
    Yield the regular files below a folder, following links to folders once each.
    """
    visited = set()
    for here, folders, names in os.walk(folder, followlinks=True):
        place = Path(here)
        if place.resolve() in visited or (place != folder and "pyvenv.cfg" in names):
            folders.clear()
            continue
        visited.add(place.resolve())
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.endswith(".egg-info"))
        for name in sorted(names):
            file = place / name
            if name not in _SKIPPED and file.suffix not in (".pyc", ".pyo") and file.is_file():
                yield file
