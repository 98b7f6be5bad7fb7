"""The lifting of possible differences between queries out of the operators below a join.

    ?x :p :c . ?x :q ?z           ?x :p ?0 . ?x :q ?z          ?0 = :c
    { ?x :p ?v FILTER(?v > 5) }   { ?x :p ?v }                 ?v > 5
    FILTER(?y = :a)               -                            ?y = :a

A pattern's subject or object becomes a variable: a new one, or that of the same term in another
pattern, by which joins above compare the two. A condition below the join is lifted part by part:

    range    ``<``, ``>``, ``=`` of one variable with a constant, STRSTARTS: by an order of values
             (``parameterize``)
    key      ``=``, ``IN`` with IRIs and plain strings, ``sameTerm``: by identity, since nothing
             else equals these; ``IN`` with integers of an integer column, which has one text for
             each value
    rest     any other form: evaluated on the rows that an index finds, except for lists of values,
             which are points of it at run time (``operators/rows/list_keys``)

A condition is lifted only if its variables are always bound: an unbound one joins with any value
and has that value above. These stay in place, too: conditions that depend on chance or time, BOUND,
conditions on static rows without an arrangement or on the keys of one, and NULL columns of tuples.
Parts are renamed on the way up, and projections keep all variables below, so the join does not
depend on the columns that queries read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from levada.core.expressions import (
    PER_REPORT,
    Call,
    Const,
    Expression,
    Function,
    Var,
    calls,
    conjunction,
    variables,
)
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import MOST_CHARACTERS, STRING, XSD, Literal, Term, equals_itself_alone
from levada.plan.execution.joins import Order
from levada.plan.physical import operators as p
from levada.plan.physical.column_lineage import column_type
from levada.plan.physical.operators import Op
from levada.plan.sharing.static_arrangements import static_side, with_relaxed_static

# The comparisons that an index can evaluate: a variable with a constant, by an order of values.
#
#     value    ``<``, ``>``, ``<=``, ``>=``, ``=`` with a number, or an instant that has a time zone
#     string   ``?v < "m"``: plain strings, by their characters
#     tagged   ``STRSTARTS(?v, "a")``: those with a language, too
#     str      ``STR(?v) < "m"``, ``STRSTARTS(STR(?v), "a")``: the result of STR() for any term
#     date     ``<`` and similar with an xsd:date without a time zone
#     local    .. with an xsd:dateTime without one
#
# The strings that start with "a" are the range from "a" up to the first string after them. Strings
# that match REGEX with "^a" start with it, too, so few are tested. Other functions (CONTAINS) and
# other constants (languages, durations, dates with a zone against dates without) have no such
# order.


TURNED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
    Function.EQUAL: Function.EQUAL,
    Function.SAME_TERM: Function.SAME_TERM,
}
"""Comparisons with exchanged sides."""
_COMPARE = TURNED.keys() - {Function.SAME_TERM}
_VALUES = {
    XSD + t for t in ("integer", "decimal", "double", "int", "long", "short", "byte", "dateTime")
}
_BEGINS = re.compile(r"\^([\w:/#@, ;=~%&-]+)(?![*?+{])")
"""Plain letters at the start of a regular expression, without one before a quantifier."""
_ZONED = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")


class RangePredicate(NamedTuple):
    """A condition that puts a variable into a range."""

    name: str
    order: Order
    function: Function
    term: Literal


def range_of_condition(part: Expression) -> RangePredicate | None:
    """Returns a part of a condition as a range, if it is one."""
    match part:
        case Call(_, (Const(), Const())):
            return None
        case Call(Function.STRSTARTS, (of, Const(Literal() as term))) if _plain(term):
            return _comparison_range(of, Order.TAGGED, Function.STRSTARTS, term)
        case Call(function, (Const(Literal() as term), of)) if function in _COMPARE:
            return range_of_condition(Call(TURNED[function], (of, Const(term))))
        case Call(function, (of, Const(Literal() as term))) if function in _COMPARE:
            order = _order(term)
            if order is Order.STRING and isinstance(of, Var) and function is Function.EQUAL:
                return None  # a key
            return None if order is None else _comparison_range(of, order, function, term)
        case _:
            return None


def necessary_range(part: Expression) -> RangePredicate | None:
    """Returns a range that a part of a condition implies, if there is one.

    A REGEX that begins with plain letters implies a STRSTARTS with these.
    """
    match part:
        case Call(Function.REGEX, (of, Const(Literal() as term))) if _plain(term):
            begins = _BEGINS.match(term.lexical)
            if begins is not None and "|" not in term.lexical:
                return _comparison_range(of, Order.TAGGED, Function.STRSTARTS, Literal(begins[1]))
    return None


def _comparison_range(
    of: Expression, order: Order, function: Function, term: Literal
) -> RangePredicate | None:
    match of:
        case Var(name):
            return RangePredicate(name, order, function, term)
        case Call(Function.STR, (Var(name),)) if order in (Order.STRING, Order.TAGGED):
            return RangePredicate(name, Order.STR, function, term)
        case _:
            return None


def _order(term: Literal) -> Order | None:
    """Returns the order in which values are compared with a constant; None: there is none for all
    values.
    """
    if _plain(term):
        return Order.STRING
    if term.datatype == XSD + "dateTime" and not _ZONED.search(term.lexical):
        return Order.LOCAL
    if term.datatype == XSD + "date":
        return Order.DATE
    return Order.VALUE if term.datatype in _VALUES else None


def _plain(term: Literal) -> bool:
    return term.datatype == STRING and not term.language


_ENDS = (0, 2)  # subject and object
_PLACED = PER_REPORT | {Function.EVENT_TIME}
"""Functions whose value depends on their place in the query."""
_ALWAYS = {Function.BOUND}
_KEY = "key"


@dataclass(slots=True)
class Lifted:
    """A lifted key (``terms``), a range (``tests`` by an ``order``), or another condition
    (``rest``).

    It has the current name of its variable, and for a key the place in the pattern.
    """

    name: str = ""
    terms: tuple[Term, ...] = ()
    tests: tuple[tuple[Function, Term], ...] = ()
    order: Order = Order.VALUE
    source: tuple[int, ...] = ()
    rest: Expression | None = None

    def rename_variables(self, names: Mapping[str, str]) -> None:
        """Renames its variables from here on."""
        self.name = names.get(self.name, self.name)
        if self.rest is not None:
            self.rest = _rename_condition(self.rest, names)


@dataclass(slots=True)
class Parameterizer:
    """The walk through one block; ``windows``: the windows of its rows. ``lifted``: the lifted
    parts.

    ``joined``: below a join, where patterns have terms and conditions any form. ``static``: static
    rows that a join reads from an arrangement may differ, too. ``keys_of_static``: the keys of the
    arrangement whose rows are being walked.
    """

    windows: tuple[int, ...]
    lifted: list[Lifted] = field(default_factory=list)
    joined: bool = True
    static: bool = True
    hidden: int = 0
    keys_of_static: frozenset[str] | None = None

    def lift(self, op: Op, way: tuple[int, ...]) -> Op:
        """Returns the operator with the operators below lifted; ``way``: the inputs that lead to
        it.

        Static rows arrive once, so a new query would not find rows that no query wanted before.
        They are lifted only in an arrangement to which they can be added (``RelaxedStatic``).
        """
        if not op.windows and self.keys_of_static is None:
            return op
        match op.spec:
            case p.Match(pattern, None) if self.keys_of_static is not None:
                return self._pattern(op, op.spec, pattern, way)
            case p.Match(pattern, stream) if self.joined and stream and not op.weighted:
                return self._pattern(op, op.spec, pattern, way)
            case p.Select(pattern, ()) if self.joined and not op.weighted:
                return self._select_all(op, op.spec, pattern)
            case p.Rename(sources):
                return self._rename(op, sources, way)
            case p.Filter(_, None):
                return self._filters(op, way)
            case p.Extend(_, None):
                child = self.lift(op.inputs[0], (*way, 0))
                return _with_inputs(op, (child,), _new_variables(child, op.inputs[0]))
            case p.Join() if is_time_join(op):
                return self._join(op, op.spec, way)
            case p.Occur() if makes_set(op):
                return self._set(op, op.spec, way)
            case _:
                return op

    @property
    def keys(self) -> list[Lifted]:
        """The lifted keys."""
        return [one for one in self.lifted if one.terms]

    @property
    def ranges(self) -> list[Lifted]:
        """The lifted ranges."""
        return [one for one in self.lifted if one.tests]

    @property
    def rest(self) -> list[Expression]:
        """The lifted conditions that are neither."""
        return [one.rest for one in self.lifted if one.rest is not None]

    def _pattern(
        self, op: Op, spec: p.Match, pattern: TriplePattern, way: tuple[int, ...]
    ) -> Op:  # fmt: skip
        """Returns a pattern with variables in place of the terms of its subject and object."""
        places = list(pattern.positions)
        lifted = tuple([at for at in _ENDS if not isinstance(places[at], Var)])
        if not lifted:
            return op
        for at in lifted:
            term = places[at]
            assert not isinstance(term, Var), "a term"
            taken = [v.name for v in places if isinstance(v, Var)]
            name = self._same(term, way, taken) or f".c{len(self.lifted)}"
            self.lifted.append(Lifted(name, (term,), source=(*way, at)))
            places[at] = Var(name)
        relaxed = replace(spec, pattern=TriplePattern(*places), lifted=lifted)
        names = tuple(dict.fromkeys(v.name for v in places if isinstance(v, Var)))
        return replace(op, spec=relaxed, variables=names)

    def _select_all(self, op: Op, spec: p.Select, pattern: TriplePattern) -> Op:
        """Returns the pattern over all triples of a stream; unwanted ones are dropped there."""
        places = list(pattern.positions)
        for at in _ENDS:
            term = places[at]
            if not isinstance(term, Var):
                places[at] = Var(f".c{len(self.lifted)}")
                self.lifted.append(Lifted(f".c{len(self.lifted)}", (term,)))
        names = tuple(dict.fromkeys(v.name for v in places if isinstance(v, Var)))
        return replace(op, spec=replace(spec, pattern=TriplePattern(*places)), variables=names)

    def _same(self, term: Term, way: tuple[int, ...], taken: Sequence[str]) -> str:
        """Returns the variable of the same term in another pattern, unless it is ``taken``."""
        for one in self.lifted:
            if one.terms == (term,) and one.source[:-1] not in ((), way) and one.name not in taken:
                return one.name
        return ""

    def _rename(self, op: Op, sources: tuple[str, ...], way: tuple[int, ...]) -> Op:
        """Returns a projection that keeps all variables below; it is not a step of the way."""
        first = len(self.lifted)
        child = self.lift(op.inputs[0], way)
        hidden = {v: self._hidden_name(v) for v in child.variables if v not in sources}
        shown = dict(zip(reversed(sources), reversed(op.variables), strict=True))
        for one in self.lifted[first:]:
            one.rename_variables(hidden | shown)
        if child is op.inputs[0] and not hidden:
            return op
        typed = op.typed | {name for source, name in hidden.items() if source in child.typed}
        names = (*op.variables, *hidden.values())
        spec = p.Rename((*sources, *hidden))
        return replace(op, spec=spec, inputs=(child,), variables=names, typed=typed)

    def _hidden_name(self, name: str) -> str:
        """Returns the name above of a variable that a projection hides.

        No query has such a name. A scan does not either: its own hidden columns differ on both
        sides of a join.
        """
        lifted = name.startswith(".") and any(one.name == name for one in self.lifted)
        if lifted or name.startswith(".."):
            return name
        self.hidden += 1
        return f"..h{self.hidden}"

    def _filters(self, op: Op, way: tuple[int, ...]) -> Op:
        """Lifts conditions over one another; filters without remaining conditions are not a step of
        the way.
        """
        lifted: _Told = {}
        rest: list[Expression] = []
        left: list[Expression] = []
        child, parts = op, 0
        while isinstance(child.spec, p.Filter) and child.spec.draw is None:
            (below,) = child.inputs
            for part in conjuncts(child.spec.condition):
                parts += 1
                if self.keys_of_static and not self.keys_of_static.isdisjoint(variables(part)):
                    left.append(part)
                    continue
                stays = _stays_true(part, below)
                if _lift_condition(part, below, lifted, any_order=stays):
                    continue
                if self.joined and stays:
                    rest.append(part)
                    _lift_range(necessary_range(part), below, lifted, any_order=stays)
                else:
                    left.append(part)
            child = below
        rows = self.lift(child, (*way, 0) if left else way)
        order = {v: i for i, v in enumerate(op.variables)}
        self.lifted += [lifted[at] for at in sorted(lifted, key=lambda at: (order[at[0]], at[1]))]
        self.lifted += [Lifted(rest=part) for part in rest]
        condition = conjunction(left)
        if condition is None:
            return rows
        kept = None if len(left) == parts and child is op.inputs[0] else p.Filter(condition)
        return _with_inputs(op, (rows,), _new_variables(rows, child), kept)

    def _join(self, op: Op, spec: p.Join, way: tuple[int, ...]) -> Op:
        """Returns a relaxed join, whose windows the picks decide."""
        at = static_side(op) if self.static else -1
        at = at if at >= 0 and _is_static_pattern(op.inputs[at]) else -1
        inputs = tuple([
            self._lift_static(child, spec, (*way, i)) if i == at else self.lift(child, (*way, i))
            for i, child in enumerate(op.inputs)
        ])  # fmt: skip
        assert op.windows is not None, "event times"
        new = [v for a, b in zip(inputs, op.inputs, strict=True) for v in _new_variables(a, b)]
        once = tuple(dict.fromkeys(new))
        keys = (*spec.keys, *(v for v in once if new.count(v) > 1))
        relaxed = _with_inputs(op, inputs, once, replace(spec, keys=keys, relaxed=True))
        lifted = at >= 0 and inputs[at] is not op.inputs[at]
        return with_relaxed_static(relaxed, at) if lifted else relaxed

    def _lift_static(self, op: Op, join: p.Join, way: tuple[int, ...]) -> Op:
        """Lifts the static side of a join, except for conditions on its keys.

        An arrangement knows only the identities of keys.
        """
        self.keys_of_static = frozenset(join.keys)
        lifted = self.lift(op, way)
        self.keys_of_static = None
        return lifted

    def _set(self, op: Op, spec: p.Occur, way: tuple[int, ...]) -> Op:
        """Returns a set, whose rows are distinguished by all columns."""
        child = self.lift(op.inputs[0], (*way, 0))
        return _with_inputs(
            op, (child,), _new_variables(child, op.inputs[0]), replace(spec, relaxed=True)
        )


def is_time_join(op: Op) -> bool:
    """Whether this is a join with a key, of rows that count by their times."""
    if not isinstance(op.spec, p.Join) or op.weighted or not op.windows:
        return False
    return bool(op.spec.keys) and not op.spec.negative


def _is_static_pattern(op: Op) -> bool:
    """Whether this is a static pattern, with or without conditions."""
    while isinstance(op.spec, p.Filter) and op.spec.draw is None:
        (op,) = op.inputs
    return isinstance(op.spec, p.Match) and op.spec.stream is None and not op.weighted


def makes_set(op: Op) -> bool:
    """Whether this is a set for the windows of all GROUP BYs over it."""
    return isinstance(op.spec, p.Occur) and op.spec.wide


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Returns the parts of a condition that must all be true."""
    if isinstance(condition, Call) and condition.function is Function.AND:
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


_Told = dict[tuple[str, str], Lifted]
"""The key and the ranges of each variable."""


def _lift_condition(part: Expression, rows: Op, lifted: _Told, *, any_order: bool) -> bool:
    """Lifts a part of a condition over these rows, if an index can evaluate it."""
    return _lift_range(range_of_condition(part), rows, lifted, any_order=any_order) or _lift_key(
        part, rows, lifted
    )


def _lift_range(
    predicate: RangePredicate | None, rows: Op, lifted: _Told, *, any_order: bool
) -> bool:
    """Lifts a range; ``any_order``: orders other than by value are allowed."""
    if predicate is None or predicate.name not in rows.variables or _may_lack(rows, predicate.name):
        return False
    if predicate.order is not Order.VALUE and (not any_order or predicate.name in rows.typed):
        return False
    one = lifted.setdefault(
        (predicate.name, predicate.order), Lifted(predicate.name, order=predicate.order)
    )
    one.tests = (*one.tests, (predicate.function, predicate.term))
    return True


def _lift_key(part: Expression, rows: Op, lifted: _Told) -> bool:
    """Lifts a key."""
    match part:
        case Call(function, (Const(term), Var(name))) if function in TURNED:
            return _lift_key(Call(TURNED[function], (Var(name), Const(term))), rows, lifted)
        case Call(Function.IN, (Var(name), *others)):
            terms = tuple([one.term for one in others if isinstance(one, Const)])
            alike = len(terms) == len(others) and all(map(equals_itself_alone, terms))
            if len(terms) == len(others) and column_type(rows, name) == "integer":
                return all(map(_is_integer, terms)) and _add_key(name, terms, lifted)
        case Call(Function.SAME_TERM, (Var(name), Const(term))):
            alike, terms = True, (term,)
        case Call(Function.EQUAL, (Var(name), Const(term))):
            alike, terms = equals_itself_alone(term), (term,)
        case _:
            return False
    by_text = name in rows.typed or name in rows.mixed or _may_lack(rows, name)
    return alike and not by_text and name in rows.variables and _add_key(name, terms, lifted)


def _add_key(name: str, terms: tuple[Term, ...], lifted: _Told) -> bool:
    """Adds a key if its variable has none yet."""
    if (name, _KEY) in lifted or not terms:
        return False
    lifted[name, _KEY] = Lifted(name, tuple(dict.fromkeys(terms)))
    return True


def _stays_true(part: Expression, rows: Op) -> bool:
    """Whether a part has the same value above the joins, and is worth evaluating there."""
    names = {*variables(part)}
    if not names or calls(part, _PLACED) or (isinstance(part, Call) and part.function in _ALWAYS):
        return False
    return all(
        v in rows.variables and v not in rows.mixed and not _may_lack(rows, v) for v in names
    )


def _rename_condition(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case Var(name):
            return Var(names.get(name, name))
        case Call(function, args):
            return Call(function, tuple([_rename_condition(arg, names) for arg in args]))
        case _:
            return expression


def _may_lack(rows: Op, name: str) -> bool:
    """Whether a variable may be unbound where a join treats it as equal to any value.

    Columns of tuples may be NULL, which joins with nothing.
    """
    return name in rows.maybe and not column_type(rows, name)


def _is_integer(term: Term) -> bool:
    return isinstance(term, Literal) and term.datatype == XSD + "integer"


def _new_variables(child: Op, before: Op) -> tuple[str, ...]:
    """Returns the variables that an input has gained."""
    return tuple([v for v in child.variables if v not in before.variables])


def _with_inputs(
    op: Op, inputs: tuple[Op, ...], new: tuple[str, ...], spec: p.Spec | None = None
) -> Op:
    """Returns the operator over other inputs, with these additional variables."""
    same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
    if same and spec is None:
        return op
    names = (*op.variables, *new)
    if isinstance(op.spec, p.Extend):  # the computed one is the last
        names = (*op.variables[:-1], *new, op.variables[-1])
    typed = op.typed | {v for v in new if any(v in i.typed for i in inputs)}
    return replace(op, spec=spec or op.spec, inputs=inputs, variables=names, typed=typed)


# The test for literals that are numbers by their lexical form.
#
# ``"x"^^xsd:integer`` and ``"300"^^xsd:byte`` are not numbers, though they have numeric datatypes.
# Such a literal equals the same term, by its text and not by a value.


_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_DOUBLE = rf"{_DECIMAL}([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_BITS = {"long": 64, "int": 32, "short": 16, "byte": 8}
_FORMS = {
    **dict.fromkeys(("integer", *_BITS), re.compile(r"[+-]?[0-9]+")),
    "decimal": re.compile(_DECIMAL),
    **dict.fromkeys(("double", "float"), re.compile(_DOUBLE)),
}


def is_number(of: Literal) -> bool:
    """Whether a literal is a number of a numeric datatype.

    >>> [is_number(Literal(text, XSD + "byte")) for text in ("-128", "+7", "128", "1e2", "")]
    [True, True, False, False, False]
    """
    datatype = of.datatype.removeprefix(XSD) if of.datatype.startswith(XSD) else ""
    form = _FORMS.get(datatype)
    if form is None or len(of.lexical) > MOST_CHARACTERS or not form.fullmatch(of.lexical):
        return False
    bits = _BITS.get(datatype)
    return bits is None or -(1 << bits - 1) <= int(of.lexical) < 1 << bits - 1
