"""Lifting: what queries may differ in below a join, taken out of it.

    ?x :p :c . ?x :q ?z           ?x :p ?0 . ?x :q ?z          ?0 = :c
    { ?x :p ?v FILTER(?v > 5) }   { ?x :p ?v }                 ?v > 5
    FILTER(?y = :a)               -                            ?y = :a

A pattern's subject or object becomes a variable: one of its own, or that of the same term in
another pattern, so that joins above compare the two and no rows of two queries' terms meet where
each query has one term in both. Of a condition below the join those
parts are taken out that compare one variable, which is always bound, with constants: ``<``, ``>``,
``=`` with a number or an instant, told by its value (a *range*); ``=``, ``IN`` with IRIs and plain
strings, ``sameTerm``, which are told by identity, since nothing else equals these (a *key*), and
``IN`` with integers of an integer column, which has one text for each value. Columns of tuples may
be NULL: what is NULL satisfies no comparison and joins with nothing. Whatever else a condition says
stays where it is. On the way up each keeps the name that its variable has there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from levada.model.expression import Call, Const, Expression, Function, Var
from levada.model.query import TriplePattern
from levada.model.term import XSD, Literal, Term, equals_itself_alone
from levada.plan.physical import operators as p
from levada.plan.physical.lineage import column_type
from levada.plan.physical.operators import Op

_ENDS = (0, 2)  # subject and object
_TURNED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
    Function.EQUAL: Function.EQUAL,
    Function.SAME_TERM: Function.SAME_TERM,
}
_VALUES = {
    XSD + t for t in ("integer", "decimal", "double", "int", "long", "short", "byte", "dateTime")
}


@dataclass(slots=True)
class Lifted:
    """A key (``terms``) or a range (``tests``): the name of its variable where the walk has come
    to, and where a key was lifted of a pattern.
    """

    name: str
    terms: tuple[Term, ...] = ()
    tests: tuple[tuple[Function, Term], ...] = ()
    source: tuple[int, ...] = ()


@dataclass(slots=True)
class Lifting:
    """The walk through one block; ``windows``: of its rows. ``found``: what has been lifted.
    ``patterns``: their terms are, too.
    """

    windows: tuple[int, ...]
    found: list[Lifted] = field(default_factory=list)
    patterns: bool = True

    def lift(self, op: Op, way: tuple[int, ...]) -> Op:
        """The operator with what is below it lifted; ``way``: the inputs that lead to it."""
        match op.spec:
            case p.Match(pattern, stream) if self.patterns and stream and not op.weighted:
                return self._pattern(op, op.spec, pattern, way)
            case p.Rename(sources):
                return self._rename(op, sources, way)
            case p.Filter(_, None):
                return self._filters(op, way)
            case p.Extend(_, None):
                child = self.lift(op.inputs[0], (*way, 0))
                return _over(op, (child,), _new(child, op.inputs[0]))
            case p.Join() if joins(op):
                return self._join(op, op.spec, way)
            case p.Occur() if makes_set(op):
                return self._set(op, op.spec, way)
            case _:
                return op

    @property
    def keys(self) -> list[Lifted]:
        """Those that are keys."""
        return [one for one in self.found if one.terms]

    @property
    def ranges(self) -> list[Lifted]:
        """Those that are ranges."""
        return [one for one in self.found if one.tests]

    def _pattern(
        self, op: Op, spec: p.Match, pattern: TriplePattern, way: tuple[int, ...]
    ) -> Op:  # fmt: skip
        """A pattern with variables in the place of its subject and object, where they are terms."""
        places = list(pattern.positions)
        lifted = tuple([at for at in _ENDS if not isinstance(places[at], Var)])
        if not lifted:
            return op
        for at in lifted:
            term = places[at]
            assert not isinstance(term, Var), "a term"
            taken = [v.name for v in places if isinstance(v, Var)]
            name = self._same(term, way, taken) or f".c{len(self.found)}"
            self.found.append(Lifted(name, (term,), source=(*way, at)))
            places[at] = Var(name)
        relaxed = replace(spec, pattern=TriplePattern(*places), lifted=lifted)
        names = tuple(dict.fromkeys(v.name for v in places if isinstance(v, Var)))
        return replace(op, spec=relaxed, variables=names)

    def _same(self, term: Term, way: tuple[int, ...], taken: Sequence[str]) -> str:
        """The variable, but for those ``taken``, that stands for a term in another pattern."""
        for one in self.found:
            if one.terms == (term,) and one.source[:-1] not in ((), way) and one.name not in taken:
                return one.name
        return ""

    def _rename(self, op: Op, sources: tuple[str, ...], way: tuple[int, ...]) -> Op:
        """A projection, which keeps what was lifted below it; it is no step of the way."""
        first = len(self.found)
        child = self.lift(op.inputs[0], way)
        hidden: dict[str, str] = {}
        for i, one in enumerate(self.found[first:], first):
            if one.name in sources:
                one.name = op.variables[sources.index(one.name)]
            else:
                own = one.name if one.name.startswith(".c") else f".c{i}"
                one.name = hidden.setdefault(one.name, own)
        if child is op.inputs[0]:
            return op
        typed = op.typed | {name for source, name in hidden.items() if source in child.typed}
        names = (*op.variables, *hidden.values())
        spec = p.Rename((*sources, *hidden))
        return replace(op, spec=spec, inputs=(child,), variables=names, typed=typed)

    def _filters(self, op: Op, way: tuple[int, ...]) -> Op:
        """Conditions, one over the other, without those that can be lifted."""
        told: dict[tuple[str, bool], Lifted] = {}
        found = self._filter(op, way, told)
        order = {v: i for i, v in enumerate(op.variables)}
        self.found += [told[at] for at in sorted(told, key=lambda at: (order[at[0]], at[1]))]
        return found

    def _filter(
        self, op: Op, way: tuple[int, ...], told: dict[tuple[str, bool], Lifted]
    ) -> Op:  # fmt: skip
        """One of them; one of which nothing is left is no step of the way."""
        assert isinstance(op.spec, p.Filter), "a condition"
        (child,) = op.inputs
        parts = list(conjuncts(op.spec.condition))
        left = [part for part in parts if not _told(part, child, told)]
        way = (*way, 0) if left else way
        again = isinstance(child.spec, p.Filter) and child.spec.draw is None
        below = self._filter(child, way, told) if again else self.lift(child, way)
        if not left:
            return below
        if len(left) == len(parts):
            return _over(op, (below,), _new(below, child))
        whole = left[0]
        for part in left[1:]:
            whole = Call(Function.AND, (whole, part))
        return _over(op, (below,), _new(below, child), p.Filter(whole))

    def _join(self, op: Op, spec: p.Join, way: tuple[int, ...]) -> Op:
        """A join, which says what was lifted below each input."""
        ends = [len(self.found)]
        inputs = []
        for i, child in enumerate(op.inputs):
            inputs.append(self.lift(child, (*way, i)))
            ends.append(len(self.found))
        sides = tuple([self._side(ends[i], ends[i + 1]) for i in range(len(inputs))])
        assert op.windows is not None, "event times"
        places = tuple(map(self.windows.index, op.windows))
        new = [v for a, b in zip(inputs, op.inputs, strict=True) for v in _new(a, b)]
        once = tuple(dict.fromkeys(new))
        keys = (*spec.keys, *(v for v in once if new.count(v) > 1))
        return _over(op, tuple(inputs), once, replace(spec, keys=keys, sides=sides, places=places))

    def _set(self, op: Op, spec: p.Occur, way: tuple[int, ...]) -> Op:
        """A set, whose rows are told apart by all that they have."""
        first = len(self.found)
        child = self.lift(op.inputs[0], (*way, 0))
        side = self._side(first, len(self.found))
        return _over(op, (child,), _new(child, op.inputs[0]), replace(spec, sides=(side,)))

    def _side(self, first: int, end: int) -> p.Side:
        """What was lifted from one number to another."""
        own = self.found[first:end]
        keys = [(self.keys.index(one), one.name) for one in own if one.terms]
        ranges = [(self.ranges.index(one), one.name) for one in own if one.tests]
        patterns = {one.source[:-1] for one in own if one.terms}
        several = len(patterns - {()}) > 1 and len({one.name for one in own if one.terms}) > 1
        return p.Side(tuple(keys), tuple(ranges), bool(ranges) or several or any(
            one.terms and not one.source for one in own
        ))  # fmt: skip


def joins(op: Op) -> bool:
    """Whether this is a join of rows that count by their times, with a key."""
    if not isinstance(op.spec, p.Join) or op.weighted or not op.windows:
        return False
    return bool(op.spec.keys) and not op.spec.negative


def makes_set(op: Op) -> bool:
    """Whether this is a set for the windows of all GROUP BYs over it."""
    return isinstance(op.spec, p.Occur) and op.spec.wide


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition that must all be true."""
    if isinstance(condition, Call) and condition.function is Function.AND:
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


def _told(part: Expression, rows: Op, told: dict[tuple[str, bool], Lifted]) -> bool:
    """Takes a part of a condition over these rows up, if it can be lifted."""
    match part:
        case Call(function, (Const(term), Var(name))) if function in _TURNED:
            return _told(Call(_TURNED[function], (Var(name), Const(term))), rows, told)
        case Call(Function.IN, (Var(name), *others)):
            terms = tuple([one.term for one in others if isinstance(one, Const)])
            alike = len(terms) == len(others) and all(map(equals_itself_alone, terms))
            if len(terms) == len(others) and column_type(rows, name) == "integer":
                return all(map(_is_integer, terms)) and _add_key(name, terms, told)
        case Call(Function.SAME_TERM, (Var(name), Const(term))):
            alike, terms = True, (term,)
        case Call(function, (Var(name), Const(term))) if function in _TURNED:
            terms = (term,)
            alike = function is Function.EQUAL and equals_itself_alone(term)
            value = isinstance(term, Literal) and term.datatype in _VALUES
            if value and name in rows.variables and not _may_lack(rows, name):
                one = told.setdefault((name, False), Lifted(name))
                one.tests = (*one.tests, (function, term))
                return True
        case _:
            return False
    by_text = name in rows.typed or name in rows.mixed or _may_lack(rows, name)
    return alike and not by_text and name in rows.variables and _add_key(name, terms, told)


def _add_key(name: str, terms: tuple[Term, ...], told: dict[tuple[str, bool], Lifted]) -> bool:
    """Takes a key up, if its variable has none yet."""
    if (name, True) in told or not terms:
        return False
    told[name, True] = Lifted(name, tuple(dict.fromkeys(terms)))
    return True


def _may_lack(rows: Op, name: str) -> bool:
    """Whether a variable may be unbound where a join takes it for equal to any value: columns of
    tuples may be NULL, and join with nothing then.
    """
    return name in rows.maybe and not column_type(rows, name)


def _is_integer(term: Term) -> bool:
    return isinstance(term, Literal) and term.datatype == XSD + "integer"


def _new(child: Op, before: Op) -> tuple[str, ...]:
    """The variables that an input has more than it had."""
    return tuple([v for v in child.variables if v not in before.variables])


def _over(op: Op, inputs: tuple[Op, ...], new: tuple[str, ...], spec: p.Spec | None = None) -> Op:
    """The operator over other inputs, which have these variables more."""
    same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
    if same and spec is None:
        return op
    names = (*op.variables, *new)
    if isinstance(op.spec, p.Extend):  # the computed one is the last
        names = (*op.variables[:-1], *new, op.variables[-1])
    typed = op.typed | {v for v in new if any(v in i.typed for i in inputs)}
    return replace(op, spec=spec or op.spec, inputs=inputs, variables=names, typed=typed)
