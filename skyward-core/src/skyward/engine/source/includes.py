"""
What an image includes, as files that travel to the nodes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from skyward.engine.source.user_modules import CODE, SKIPPED, ModuleFile, excluded, loaded_modules, read_file
from skyward.errors import ConfigError

_TOTAL_LIMIT: Final = 512 * 1024 * 1024

Included: TypeAlias = tuple[str, Path, Path]
"""A path on the node, the file here, and the folder that it must not lead out of."""


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
    A link is followed where it leads to something in the folder that is included: the folder's author must not
    choose which other files of this machine travel.

    Args:
        includes: Files, folders and glob patterns (`configs/*.yaml`, `src/**/*.py`).
        excludes: Glob patterns for paths from `base` or on the node; one without a slash matches at any depth.
        base: The folder that relative paths start from.

    Raises:
        ConfigError: Nothing is there, a link leads out of its folder, two files would have one path, or there is more
            than 64 MiB in one file or 512 MiB in all.

    >>> include_files(())
    ()
    """
    top = _absolute(Path(base))
    found: dict[str, Path] = {}
    for include in includes:
        for path, file, within in _included(include, top):
            if excluded(path, excludes) or excluded("/".join(_near(file, top)), excludes):
                continue
            _check(file, within)
            other = found.setdefault(path, file)
            if other != file and not other.samefile(file) and read_file(path, other) != read_file(path, file):
                raise ConfigError(f"includes has two files for {path!r} on the node: {str(other)!r} and {str(file)!r}.")
    return _read_all(found)


def _read_all(found: dict[str, Path]) -> tuple[ModuleFile, ...]:
    files, total = [], 0
    for path in sorted(found):
        try:
            files.append(read_file(path, found[path]))
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


def _included(include: str, top: Path) -> Iterator[Included]:
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
            if match.is_file() and SKIPPED.isdisjoint(_near(match, top)):
                yield from _file(match, top)
            elif match.is_dir() and "**" not in include and match.name not in SKIPPED:
                yield from _folder(match, top)


def _matches(pattern: Path) -> list[Path]:
    fixed = next((part for part in pattern.parents if not set("*?[").intersection(str(part))), pattern)
    return sorted(fixed.glob(str(pattern.relative_to(fixed)))) if set("*?[").intersection(str(pattern)) else []


def _nearest(missing: Path) -> str | None:
    from difflib import get_close_matches

    beside = [file.name for file in missing.parent.iterdir()] if missing.parent.is_dir() else []
    close = get_close_matches(missing.name, beside, n=1)
    return f"Did you mean {close[0]!r}?" if close else None


def _file(file: Path, top: Path) -> Iterator[Included]:
    package, root = _packages_around(file.parent)
    within = _around(file, top)
    if package:
        yield from _inits(package, root)
        yield "/".join((*package, file.name)), file, within
    else:
        yield file.name if file.suffix in CODE else "/".join(_near(file, top)), file, within


def _folder(folder: Path, top: Path) -> Iterator[Included]:
    package, root = _packages_around(folder)
    _check(folder, _around(folder, top))
    files = list(_walk(folder))
    if package:
        yield from _inits(package, root)
        prefix = package
    elif any(file.suffix in CODE for file in files):
        prefix = _namespace(folder)
    else:
        prefix = _near(folder, top)
    for file in files:
        yield "/".join((*prefix, *file.relative_to(folder).parts)), file, folder


def _around(path: Path, top: Path) -> Path:
    """
    Return the folder that a path must not lead out of: the base, or what it names where it names something elsewhere.
    """
    return top if path.is_relative_to(top) else path


def _leads_out(path: Path, within: Path) -> bool:
    return not path.resolve().is_relative_to(within.resolve())


def _check(path: Path, within: Path) -> None:
    if _leads_out(path, within):
        raise ConfigError(
            f"includes would follow {str(path)!r} out of {str(within)!r}, to {str(path.resolve())!r}.",
            hint="If that is to travel, name it in includes by its own path; if not, leave the link out with excludes.",
        )


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


def _inits(package: tuple[str, ...], root: Path) -> Iterator[Included]:
    for count in range(1, len(package) + 1):
        path = "/".join((*package[:count], "__init__.py"))
        yield path, root / path, root


def _namespace(folder: Path) -> tuple[str, ...]:
    """
    Return the name of the loaded namespace package that a folder is, empty where it is none.
    """
    for name, module in loaded_modules().items():
        try:
            space = object.__getattribute__(module, "__dict__")
            if space.get("__file__") is None and folder in map(Path, space.get("__path__", ())):
                return tuple(name.split("."))
        except Exception:  # anything may lie in sys.modules
            continue
    return ()


def _walk(folder: Path) -> Iterator[Path]:
    """
    Yield the regular files below a folder, following links to folders once each, and links to folders elsewhere.
    """
    visited = set()
    for here, folders, names in os.walk(folder, followlinks=True):
        place = Path(here)
        if place.resolve() in visited or (place != folder and "pyvenv.cfg" in names):
            folders.clear()
            continue
        visited.add(place.resolve())
        kept = sorted(name for name in folders if name not in SKIPPED and not name.endswith(".egg-info"))
        outside = {name for name in kept if (place / name).is_symlink() and _leads_out(place / name, folder)}
        folders[:] = [name for name in kept if name not in outside]
        yield from (place / name for name in sorted(outside) if not (place / name / "pyvenv.cfg").exists())
        for name in sorted(names):
            file = place / name
            if name not in SKIPPED and file.suffix not in (".pyc", ".pyo") and file.is_file():
                yield file
