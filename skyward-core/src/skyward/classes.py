"""
Classes whose objects live in workers: `@sky.cls`.
"""

from __future__ import annotations

import functools
import inspect
import secrets
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Generic, Literal, NoReturn, ParamSpec, Protocol, TypeVar, cast, overload

from skyward.errors import UsageError
from skyward.function import Function
from skyward.link.blame import blame
from skyward.link.payload import views
from skyward.link.payload_making import dump
from skyward.model.fields.setting import choice, known_only, nearest
from skyward.node.worker.objects import ObjectRecipe, bound
from skyward.pending import PendingFunction, short

P = ParamSpec("P")
C = TypeVar("C")

OnLoss = Literal["rebuild", "raise"]
"""What becomes of a call to an object whose process has ended: it is rebuilt, or the call fails."""


class Class(Generic[P, C]):
    """
    A class whose objects are made in workers, made by `@sky.cls`.

    Calling it makes a handle, on which methods make pending calls; to type checkers the handle is the object.

    Args:
        plain: The class itself.
        on_loss: Whether an object whose process has ended is rebuilt at the next call there, or is missed.
    """

    def __init__(self, plain: Callable[P, C], *, on_loss: OnLoss = "rebuild") -> None:
        self.plain = plain
        self.on_loss = on_loss
        functools.update_wrapper(self, plain, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        for value in (*args, *kwargs.values()):
            if isinstance(value, PendingFunction):
                raise UsageError(
                    f"{self.__qualname__} was given {value!r}, which has not run.",
                    hint=f"Run it first and pass its result: `{self.__qualname__}(... >> pool)`.",
                )
        try:
            signature = inspect.signature(self.plain)
        except (TypeError, ValueError):
            signature = None
        try:
            arguments = dict(signature.bind(*args, **kwargs).arguments) if signature is not None else {}
        except TypeError as error:
            raise UsageError(f"{self.__qualname__}{signature} cannot be made like this: {error}.") from None
        try:
            parts = tuple(map(bytes, views(dump((self, args, kwargs)))))
        except Exception as error:
            raise blame(error, function=self.__qualname__, arguments=arguments, target=self.plain) from error
        recipe = ObjectRecipe(secrets.token_hex(8), self.__qualname__, parts, self.on_loss == "raise")
        return cast("C", Handle(self, recipe))

    def local(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Make a plain object, here and now."""
        return self.plain(*args, **kwargs)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        # A class that derives from this one is a plain class until it is decorated itself.
        return (self.plain,)

    def __reduce__(self) -> str | tuple[Any, ...]:
        found: Any = sys.modules.get(self.__module__) if self.__module__ != "__main__" else None
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (_class, (self.plain, self.on_loss))

    def __repr__(self) -> str:
        return f"<sky.cls {self.__qualname__}>"

    __name__: str
    __qualname__: str


class Handle:
    """
    An object that is made in each worker at the first call there; its methods make pending calls.

    Args:
        kind: Its class.
        recipe: How it is made.
    """

    __slots__ = ("__kind", "__methods", "__recipe", "__weakref__")

    __kind: Class[..., Any]
    __methods: dict[str, Method]
    __recipe: ObjectRecipe

    def __init__(self, kind: Class[..., Any], recipe: ObjectRecipe) -> None:
        object.__setattr__(self, "_Handle__kind", kind)
        object.__setattr__(self, "_Handle__recipe", recipe)
        object.__setattr__(self, "_Handle__methods", {})

    def __getattr__(self, name: str) -> Method:
        if name not in self.__methods:
            self.__methods[name] = Method(self.__recipe, name, _method(self.__kind, name, self))
        return self.__methods[name]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{self.__kind.__qualname__}.{name} cannot be set from here: the object lives in workers. "
            "Write a method that sets it.",
            name=name,
        )

    def __dir__(self) -> list[str]:
        plain = cast("type", self.__kind.plain)
        return sorted(name for name in dir(plain) if _callee(plain, name) is not None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Handle, (self.__kind, self.__recipe)

    def __repr__(self) -> str:
        return f"<{self.__kind.__qualname__} in workers>"


class Method(Function[..., Any]):
    """
    A method of an object that lives in workers.

    Args:
        recipe: How the object is made.
        method: The method's name.
        shape: What is called like it, and does the same; with the settings of `@sky.function`, if it has any.
    """

    def __init__(self, recipe: ObjectRecipe, method: str, shape: Callable[..., Any]) -> None:
        decorated = getattr(shape, "__func__", shape)
        settings: dict[str, Any] = {}
        if isinstance(decorated, Function):
            settings = {"timeout": decorated.timeout, "retries": decorated.retries}
            shape = MethodType(decorated.local, getattr(shape, "__self__", recipe))
        super().__init__(bound(recipe, method), **settings)
        self.__doc__ = shape.__doc__
        self._shape = shape
        self.needs = recipe.key if recipe.lasts else ""

    @property
    def shape(self) -> Callable[..., Any]:
        """Return what is called like it, for its parameters."""
        return self._shape


@overload
def cls(kind: Callable[P, C], /) -> Class[P, C]: ...
@overload
def cls(*, on_loss: OnLoss = "rebuild") -> _ClassDecorator: ...
def cls(kind: Any = None, /, *, on_loss: OnLoss = "rebuild", **unknown: Any) -> Any:
    """
    Make a class whose objects live in workers, and whose methods are called as functions are.

    What it is made with is sent once; the object is made in each worker process at the first call there, and is kept
    until that process ends, which is when the pool does at the latest.

    Args:
        kind: The class.
        on_loss: What becomes of a call to a worker whose object is gone because its process has ended: `"rebuild"`
            makes it again, `"raise"` has the call fail.
        unknown: What there is no setting for.

    Raises:
        ConfigError: If `on_loss` is neither.
        UsageError: If `kind` is no class, or a keyword is unknown.

    >>> import skyward as sky
    >>> @sky.cls
    ... class Model:
    ...     def __init__(self, factor: int) -> None:
    ...         self.factor = factor
    ...
    ...     @sky.function
    ...     def predict(self, x: int) -> int:
    ...         return self.factor * x
    >>> model = Model(3)
    >>> model.predict(4)
    <pending Model.predict(4)>
    >>> with sky.Compute(console="silent") as pool:
    ...     model.predict(4) >> pool
    12
    """
    known_only(unknown, ("on_loss",), "@sky.cls")
    choice(on_loss, "on_loss", ("rebuild", "raise"))
    if kind is None:
        return lambda kind: Class(_checked(kind), on_loss=on_loss)
    return Class(_checked(kind), on_loss=on_loss)


class _ClassDecorator(Protocol):
    def __call__(self, kind: Callable[P, C], /) -> Class[P, C]: ...


def _class(plain: type, on_loss: OnLoss) -> Class[..., Any]:
    return Class(plain, on_loss=on_loss)


def _checked(kind: object) -> type:
    if isinstance(kind, Class):
        return cast("type", kind.plain)
    if not isinstance(kind, type):
        other = " Decorate it with `@sky.function`." if callable(kind) else ""
        raise UsageError(f"`@sky.cls` is for classes, and this is a {type(kind).__name__}: {short(kind)}.{other}")
    return kind


def _callee(plain: type, name: str) -> Any:
    """Find a public method as its class has it; None for anything else."""
    if name.startswith("_"):
        return None
    found = inspect.getattr_static(plain, name, None)
    return found if isinstance(found, FunctionType | Function | staticmethod | classmethod) else None


def _method(kind: Class[..., Any], name: str, handle: Handle) -> Callable[..., Any]:
    """
    Return a method as it is called on the object.

    Raises:
        AttributeError: If there is none that can be called from here.
    """
    plain = cast("type", kind.plain)
    found = _callee(plain, name)
    if isinstance(found, FunctionType | Function):
        return MethodType(found, handle)
    if found is not None:
        return cast("Callable[..., Any]", getattr(plain, name))
    where = f"{kind.__qualname__}.{name}"
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(f"{where} cannot be called from here: special methods are the object's own.", name=name)
    if name.startswith("_"):
        raise AttributeError(f"{where} is private, and the object lives in workers: write a public method.", name=name)
    if inspect.getattr_static(plain, name, None) is not None:
        raise AttributeError(
            f"{where} is no method, and the object lives in workers: write a method that returns it.", name=name
        )
    close = nearest(name, [known for known in dir(plain) if _callee(plain, known) is not None])
    offer = f" Did you mean {close}?" if close else " What its constructor sets is in workers only."
    raise AttributeError(f"{kind.__qualname__} has no method {name!r}.{offer}", name=name)
