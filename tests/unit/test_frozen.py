"""A class made by ``frozen`` is as one made by ``dataclasses``, in all that is looked at here."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import (
    FrozenInstanceError,
    InitVar,
    dataclass,
    field,
    fields,
    is_dataclass,
    replace,
)
from typing import Any, Generic, TypeVar

import pytest

from levada.core.frozen import frozen

T = TypeVar("T")
Decorator = Callable[[type[Any]], type[Any]]
STANDARD: Decorator = dataclass(frozen=True, slots=True)


def classes(made: Decorator) -> dict[str, type[Any]]:
    """The same classes by either; what differs between fields is in one of them."""

    class Plain:
        """Has a text."""

        a: int
        b: str = "b"

    class Fields:
        a: int
        made: list[int] = field(default_factory=list)
        hidden: int = field(default=1, repr=False)
        beside: int = field(default=2, compare=False)
        later: int = field(init=False)
        own: list[int] = field(init=False, default_factory=list)
        constant: int = field(init=False, default=7)
        unhashed: int = field(default=3, hash=False)
        named: int = field(default=4, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.a + 1)

    class Named:
        first: int = field(default=5, kw_only=True)
        second: int
        third: int = field(kw_only=True, default_factory=int)

    class Alone:
        one: object

    class Nothing:
        pass

    class Equal:  # noqa: PLW1641 it is given one
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    class Hashed:
        a: int

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "hashed"

    class Of(Generic[T]):
        a: T

    found = {c.__name__: made(c) for c in (Plain, Fields, Named, Alone, Nothing, Equal, Hashed, Of)}

    class Inherits(found["Plain"]):  # type: ignore[misc, valid-type]
        c: int = 3

    return {**found, "Inherits": made(Inherits)}


OURS, THEIRS = classes(frozen), classes(STANDARD)
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "Plain": [(1,), (1, "b"), (2, "c")], "Fields": [(1,), (1, [1]), (1, [], 5), (1, [], 1, 9)],
    "Named": [(1,), (2,)], "Alone": [(1,), ((),), (None,)], "Nothing": [()], "Equal": [(1,), (2,)],
    "Hashed": [(1,), (2,)], "Of": [(1,), ("a",)], "Inherits": [(1,), (1, "b", 4)],
}  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_it_is_as_the_standard_library_has_it(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    assert is_dataclass(ours)
    assert vars(ours)["__match_args__"] == vars(theirs)["__match_args__"]
    assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
    assert [str(p) for p in inspect.signature(ours).parameters] == [
        str(p) for p in inspect.signature(theirs).parameters
    ]
    mine = [ours(*given) for given in ARGUMENTS[name]]
    right = [theirs(*given) for given in ARGUMENTS[name]]
    assert [repr(one) for one in mine] == [repr(one) for one in right]
    assert [[a == b for b in mine] for a in mine] == [[a == b for b in right] for a in right]
    assert not hasattr(mine[0], "__dict__") or hasattr(right[0], "__dict__")
    assert mine[0] != right[0] or name == "Equal"
    if name != "Fields":
        assert [hash(one) for one in mine] == [hash(one) for one in right]


@pytest.mark.parametrize("name", OURS)
def test_it_is_frozen(name: str) -> None:
    for made in (OURS[name], THEIRS[name]):
        one = made(*ARGUMENTS[name][0])
        for key in [f.name for f in fields(made)][:1]:
            with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{key}'"):
                setattr(one, key, 3)
            with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{key}'"):
                delattr(one, key)


def test_wrong_arguments_are_refused() -> None:
    for made in (OURS["Plain"], THEIRS["Plain"]):
        for given, named in [((), {}), ((1, "b", 2), {}), ((1,), {"c": 1})]:
            with pytest.raises(TypeError, match=r"__init__\(\)"):
                made(*given, **named)
    with pytest.raises(TypeError, match="positional"):
        OURS["Fields"](1, [], 1, 9, 3, 4)


def test_what_is_no_field_is_refused() -> None:
    class Wrong:
        a: InitVar[int]

    with pytest.raises(AssertionError, match="Wrong is no frozen class"):
        frozen(Wrong)


def test_what_has_no_argument_is_made_anew() -> None:
    one, two = OURS["Fields"](1), OURS["Fields"](1)
    assert one.made is not two.made and one.own is not two.own
    assert (one.later, one.constant, one.named) == (2, 7, 4)
    assert replace(one, a=5).later == 6 and replace(one, named=9).named == 9


def test_a_nan_equals_itself_and_what_is_recursive_is_shown() -> None:
    nan = float("nan")
    for made in (OURS["Alone"], THEIRS["Alone"]):
        assert made(nan) == made(nan) and made(nan) != made(float("nan"))
        many: list[Any] = []
        many.append(made(many))
        assert repr(many[0]).endswith("Alone(one=[...])")


def test_a_class_may_inherit_it_and_match_it() -> None:
    @dataclass(frozen=True)
    class More(Kept):
        c: int = 0

    class Beside(Kept):
        """Adds an attribute that is no field."""

        other: int

    assert More(1, [], 2) == More(1, [], 2) != More(1, [], 3)
    beside = Beside(1)
    beside.other = 2
    assert beside.other == 2 and beside != Kept(1)
    match Kept(1, [3]):
        case Kept(1, made):
            assert made == [3]
        case _:
            pytest.fail("it matches")


@frozen
class Kept:
    """Can be found by its name, as pickles want it."""

    a: int
    b: list[int] = field(default_factory=list, compare=False)


def test_it_is_pickled_and_copied() -> None:
    one = Kept(1, [2])
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
        assert again == one and again.b == [2] and hash(again) == hash(one)
    with pytest.raises(FrozenInstanceError):
        one.a = 2  # type: ignore[misc]
