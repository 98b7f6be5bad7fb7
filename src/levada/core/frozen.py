"""Frozen dataclasses with slots whose classes are created in a third of the time.

Levada has some 600 of them, and a third of the start time went into creating their classes:
``dataclasses`` writes six methods for each as text and compiles them. Here only ``__init__`` is
text; it sets slots directly. The other methods, which differ only in the names of fields, are
functions over these names. All else is as in ``@dataclass(frozen=True, slots=True)``: fields,
``replace``, equality within one class, hash, pickles, patterns (docs/decisions/0123-frozen.md;
tests/unit/test_frozen.py compares them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

from levada.core.code_loading import compile_function

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class whose instances are frozen values with slots, equal where all fields are.

    A class that inherits fields is made by ``dataclasses``; ``InitVar`` is not supported.

    >>> @frozen
    ... class Span:
    ...     start: int
    ...     end: int = 0
    >>> Span(1), Span(1) == Span(1, 0)
    (Span(start=1, end=0), True)
    """
    if any(is_dataclass(base) for base in cls.__mro__[1:]):
        return dataclass(frozen=True, slots=True)(cls)
    if not cls.__doc__:  # else its signature is looked for, which is dear
        cls.__doc__ = f"{cls.__name__}({', '.join(get_annotations(cls))})"
    assert not any("InitVar" in str(kind) for kind in get_annotations(cls).values()), (
        f"{cls.__name__} is no frozen class: what is said at first is a field, or nowhere"
    )
    said = dict(cls.__dict__)
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = True  # type: ignore[attr-defined]  # for what inherits
    for name, method in {**_methods(made), "__init__": _init(made)}.items():
        if said.get(name) is None:  # a class with __eq__ alone has None for __hash__
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            setattr(made, name, method)
    return made


def _init(made: type[Any]) -> Callable[..., None]:
    """Returns an ``__init__`` that sets each slot by its descriptor; a field without argument gets
    its default.
    """
    sorted_fields = sorted(fields(made), key=lambda one: one.kw_only is True)
    names: dict[str, Any] = {"_MISSING": MISSING}
    heads, lines = ["self"], []
    for one in sorted_fields:
        names[f"_set_{one.name}"] = getattr(made, one.name).__set__
        names[f"_default_{one.name}"] = one.default
        names[f"_make_{one.name}"] = one.default_factory
        made_anew = one.default_factory is not MISSING
        if one.kw_only and "*" not in heads:
            heads.append("*")
        if one.init:
            default = "_MISSING" if made_anew else f"_default_{one.name}"
            has = made_anew or one.default is not MISSING
            heads.append(f"{one.name}={default}" if has else one.name)
        lines += _line(one, made_anew)
    lines += ["self.__post_init__()"] if hasattr(made, "__post_init__") else []
    text = f"def __init__({', '.join(heads)}):\n " + "\n ".join(lines or ["pass"])
    init = compile_function(text, "__init__", names)
    init.__annotations__ = {
        **{one.name: one.type for one in sorted_fields if one.init},
        "return": None,
    }
    return init


def _line(one: Field[Any], made_anew: bool) -> list[str]:
    """Returns the line that sets a slot, or no line if the field has no initial value."""
    what = one.name if one.init else f"_default_{one.name}"
    if made_anew:
        call = f"_make_{one.name}()"
        what = f"{call} if {one.name} is _MISSING else {one.name}" if one.init else call
    elif not one.init and one.default is MISSING:
        return []
    return [f"_set_{one.name}(self, {what})"]


def _methods(made: type[Any]) -> dict[str, Callable[..., Any]]:
    """The methods that follow from the names of the fields."""
    all_fields: tuple[Field[Any], ...] = fields(made)
    shown = [one.name for one in all_fields if one.repr]
    compared = _tuple_of([one.name for one in all_fields if one.compare])
    hashed = _tuple_of([o.name for o in all_fields if (o.compare if o.hash is None else o.hash)])

    def equal(self: Any, other: object) -> Any:
        same = other.__class__ is self.__class__
        return compared(self) == compared(other) if same else NotImplemented

    def code(self: Any) -> int:
        return hash(hashed(self))

    @recursive_repr()
    def text(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return {"__eq__": equal, "__hash__": code, "__repr__": text, **_unchanging(made)}


def _unchanging(made: type[Any]) -> dict[str, Callable[..., Any]]:
    """Returns methods that refuse changes, and methods that still allow copies and pickles."""
    all_fields: tuple[Field[Any], ...] = fields(made)
    names = frozenset(one.name for one in all_fields)

    def set_(self: Any, name: str, to: object) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, to)

    def delete(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    def state(self: Any) -> list[Any]:
        return [getattr(self, one.name) for one in all_fields]

    def set_state(self: Any, values: list[Any]) -> None:
        for one, to in zip(all_fields, values, strict=True):
            object.__setattr__(self, one.name, to)

    changes: dict[str, Callable[..., Any]] = {"__setattr__": set_, "__delattr__": delete}
    return {**changes, "__getstate__": state, "__setstate__": set_state}


def _tuple_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Returns a function that makes a tuple of these attributes: tuples take identical values as
    equal.
    """
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple([getattr(one, name) for name in names])
