"""Computes the facets that each operator needs of its inputs: texts and values are sent only where
an operator reads them.

``input_needs`` maps the needs of an operator's output (variable -> facets) to the needs of its
inputs. A variable without needs has no slot below. Numeric comparisons with constants and
arithmetic read value facets only. Operators that may compare or build strings read texts. So do
sums that may be of dates and durations, whose values are in no facet. The text of a typed column
follows from its value, so it is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from levada.core.expressions import (
    AggregateFunction,
    Call,
    Const,
    Expression,
    Function,
    Param,
    Var,
    random,
)
from levada.core.rdf_terms import Literal
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.physical import operators as p
from levada.plan.physical.column_lineage import column_types
from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import ALL_PARTITIONS
from levada.plan.physical.traits import Plain
from levada.plan.sharing.parameterize import is_number

Needs = dict[str, Facet]
_ALL_FACETS = Facet.ID | Facet.NUM | Facet.TEXT
_F = Function
_ARITHMETIC = {
    _F.ADD,
    _F.SUBTRACT,
    _F.MULTIPLY,
    _F.DIVIDE,
    _F.PLUS,
    _F.MINUS,
    _F.ABS,
    _F.ROUND,
    _F.CEIL,
    _F.FLOOR,
}
_SUMS = {_F.ADD, _F.SUBTRACT, _F.PLUS, _F.MINUS}
_COMPARE = {_F.EQUAL, _F.NOT_EQUAL, _F.LESS, _F.GREATER, _F.LESS_EQUAL, _F.GREATER_EQUAL}
_LOGIC = {_F.AND, _F.OR, _F.NOT}
_KIND = {_F.BOUND, _F.IS_IRI, _F.IS_BLANK, _F.IS_LITERAL, _F.IS_NUMERIC}
_VALUE = {"integer": Facet.INT, "double": Facet.DBL}


def expression_needs(expression: Expression) -> Needs:
    """Returns the facets that evaluating an expression reads of each variable.

    >>> expression_needs(Call(Function.MULTIPLY, (Var("a"), Var("b"))))["a"] is Facet.NUM
    True
    """
    needs: Needs = {}
    _visit(expression, needs)
    return needs


def _visit(expression: Expression, needs: Needs, number: bool = False) -> None:
    """Adds the needs of an expression; ``number``: the reader needs a number, other values are
    errors.
    """
    match expression:
        case Var(name):
            add(needs, name, Facet.NUM if number else _ALL_FACETS)
        case Call(function, args) if function in _KIND:
            for arg in args:
                _visit(arg, needs, isinstance(arg, Var))
        case Call(function, args) if function in _ARITHMETIC and (number or _is_number(expression)):
            _numeric(args, needs)
        case Call(function, args) if function in _COMPARE and any(map(_is_number, args)):
            _numeric(args, needs)
        case Call(function, args) if function in _LOGIC:
            for arg in args:
                add(needs, arg.name, _ALL_FACETS) if isinstance(arg, Var) else _visit(arg, needs)
        case Call(_, args):
            for arg in args:
                _visit(arg, needs)
        case _:
            return


def _numeric(args: tuple[Expression, ...], needs: Needs) -> None:
    for arg in args:
        _visit(arg, needs, number=True)


def _is_number(expression: Expression) -> bool:
    """Whether the value is certainly a number if it exists."""
    if isinstance(expression, Const) and isinstance(expression.term, Literal):
        return is_number(expression.term)
    if not isinstance(expression, Call) or expression.function not in _ARITHMETIC:
        return False
    return expression.function not in _SUMS or any(map(_is_number, expression.args))


def add(needs: Needs, name: str, facets: Facet) -> None:
    """Adds facets to a variable's needs."""
    needs[name] = needs.get(name, NOTHING) | facets


def merge(*parts: Mapping[str, Facet]) -> Needs:
    """Returns the union of needs."""
    out: Needs = dict(parts[0]) if parts else {}
    for part in parts[1:]:
        for name, facets in part.items():
            known = out.get(name)
            out[name] = facets if known is None or known is facets else known | facets
    return out


def _identity_needs(names: tuple[str, ...]) -> Needs:
    return dict.fromkeys(names, Facet.ID)


def _trim(needs: Needs, op: Op) -> Needs:
    """Returns the needs that the input can have; texts of typed columns become value facets."""
    out: Needs = {}
    typed = [name for name in op.variables if name in op.typed and name in needs]
    types = column_types(op, typed) if typed else {}
    for name in op.variables:
        facets = needs.get(name, NOTHING)
        if name in op.typed and Facet.TEXT in facets:
            facets = (facets & ~Facet.TEXT) | Facet.NUM
        if Facet.NUM in facets and name in op.typed:
            facets = (facets & ~Facet.NUM) | _VALUE.get(types.get(name, ""), Facet.NUM)
        elif Facet.NUM in facets:
            # it finds the text of a number that the value facets cannot represent
            facets |= Facet.ID
        if Facet.TEXT in facets and name in op.mixed:
            facets |= Facet.NUM | Facet.ID
        if facets:
            out[name] = facets
    return out


def emit_needs(op: Op) -> Needs:
    """Returns the needs of a query's results: the text of every variable."""
    return _trim(dict.fromkeys(op.variables, Facet.TEXT), op)


def input_needs(op: Op, out: Needs) -> list[Needs]:
    """Returns the needs of each input for these needs of the output."""
    wanted = _collect_needs(op, out)
    exchanged = [[v for v in (e or ()) if v and e != ALL_PARTITIONS] for e in op.exchange]
    needs = [merge(w, _identity_needs(tuple(x))) for w, x in zip(wanted, exchanged, strict=True)]
    return [_trim(n, i) for n, i in zip(needs, op.inputs, strict=True)]


def _collect_needs(op: Op, out: Needs) -> list[Needs]:
    spec = op.spec
    match spec:
        case p.Filter(condition, draw):
            return [merge(out, expression_needs(condition), _draw_needs(draw))]
        case p.Pick(keyed, tests, others):
            asked = (*(test.condition for test in tests), *others)
            condition_needs = merge(*map(expression_needs, asked))
            return [
                merge(out, _identity_needs(tuple([key.name for key in keyed])), condition_needs)
            ]
        case p.Extend(expression, draw):
            rest = {v: f for v, f in out.items() if v != op.variables[-1]}
            return [merge(rest, expression_needs(expression), _draw_needs(draw))]
        case p.Join():
            return _join_needs(op, spec, out)
        case p.Arrange(keys):
            raw = isinstance(spec, p.ArrangeStream) and spec.raw
            return [merge(out, _identity_needs(op.variables if raw else keys))]
        case p.MultiwayJoin(keys, raw):
            return [
                merge(out, _identity_needs(i.variables if is_raw else keys))
                for i, is_raw in zip(op.inputs, raw, strict=True)
            ]
        case p.LinkedJoin(shared, raw, _):
            return [
                merge(out, _identity_needs(i.variables if is_raw else key_needs))
                for i, key_needs, is_raw in zip(op.inputs, shared, raw, strict=True)
            ]
        case p.ReportJoin():
            return _report_join_needs(op, spec, out)
        case p.Closure():
            ends = merge(
                *(dict.fromkeys(op.variables, f | Facet.ID) for f in (Facet.ID, *out.values()))
            )
            steps = len(op.inputs) - (spec.seed is not None)
            return [
                ends if i < steps else _identity_needs(rows.variables)
                for i, rows in enumerate(op.inputs)
            ]
        case p.Panes(keys, aggregates, _) | p.RGroup(keys, aggregates, _, _):
            return [_group_needs(op, keys, aggregates, out)]
        case p.Running(keys, aggregates, _):
            return [_group_needs(op, keys, aggregates, out), *({} for _ in op.inputs[1:])]
        case p.Snapshot():
            return [*_needs_of_every_variable(op, out)[:1], *({} for _ in op.inputs[1:])]
        case p.ROrder(keys=keys) | p.RNumber(keys=keys):
            key_needs = merge(*(expression_needs(e) for e, _ in keys))
            return [merge(out, key_needs, dict.fromkeys(op.variables, Facet.TEXT | Facet.ID))]
        case p.CountWindow(keys=keys, bag=True):  # all rows count, equal ones as well
            return [
                merge(out, dict.fromkeys(op.inputs[0].variables, Facet.TEXT), _identity_needs(keys))
            ]
        case p.Select():
            return [_select_needs(spec, out)]
        case p.Recent(keys=keys):  # rows of one time are ordered by their texts
            key_needs = merge(
                dict.fromkeys(op.inputs[0].variables, Facet.TEXT), _identity_needs(keys)
            )
            shown = [{spec.sources[op.variables.index(v)]: f} for v, f in out.items()]
            return [merge(key_needs, *shown)]
        case Plain():
            return _needs_of_every_variable(op, out, facets_of_all_variables(op))
        case _:
            assert_never(spec)


def facets_of_all_variables(op: Op) -> Facet:
    """Returns the facets that an operator reads of every variable of its inputs alike."""
    weighted = op.weighted or any(i.weighted for i in op.inputs)
    return op.spec.reads(weighted) if isinstance(op.spec, Plain) else NOTHING


def _needs_of_every_variable(op: Op, out: Needs, facets: Facet = Facet.ID) -> list[Needs]:
    """Returns the needs above with these facets of all variables; identities distinguish whole
    rows.
    """
    if not facets:
        return [out for _ in op.inputs]
    return [merge(out, dict.fromkeys(i.variables, facets)) for i in op.inputs]


def _join_needs(op: Op, spec: p.Join, out: Needs) -> list[Needs]:
    shared = tuple(v for v in op.inputs[0].variables if v in op.inputs[1].variables)
    return [
        _arrangement_needs(i, i.spec, shared, out)
        if isinstance(i.spec, p.Arrange)
        else merge(out, _identity_needs(i.variables if is_raw else (*spec.keys, *shared)))
        for i, is_raw in zip(op.inputs, spec.raw, strict=True)
    ]


def _report_join_needs(op: Op, spec: p.ReportJoin, out: Needs) -> list[Needs]:
    shared, condition, rows = spec.shared, spec.condition, op.inputs[1]
    key_needs = merge(
        _identity_needs(shared), {} if condition is None else expression_needs(condition)
    )
    if condition is not None and random(condition):
        return [merge(whole, key_needs) for whole in _needs_of_every_variable(op, out)]
    right = merge(out, key_needs) if spec.kind.returns_pairs else key_needs
    if isinstance(rows.spec, p.Arrange):
        right = _arrangement_needs(rows, rows.spec, shared, right)
    return [merge(out, key_needs), right]


def _arrangement_needs(op: Op, spec: p.Arrange, shared: tuple[str, ...], out: Needs) -> Needs:
    """Returns the needs of a join for rows of an arrangement that other joins read, too.

    It reads everything that distinguishes rows, so later joins find it there. It does not read the
    keys, which the other side has. Rows that are not a set are distinguished by the ``shared``
    variables, if these may be unbound.
    """
    others = tuple([v for v in op.variables if v not in spec.keys])
    apart = others
    set_already = isinstance(spec, p.ArrangeStream) and not spec.raw
    if set_already or isinstance(spec, p.ArrangeDistinct):
        apart = tuple([v for v in others if v in shared])
    return merge({v: f for v, f in out.items() if v in others}, _identity_needs(apart))


def _draw_needs(draw: p.Draw | None) -> Needs:
    return {} if draw is None else _identity_needs(draw.solution)


def _select_needs(spec: p.Select, out: Needs) -> Needs:
    names = ("s", "p", "o", *spec.beside)
    needs: Needs = _identity_needs(names)
    positions = (*spec.pattern.positions, *map(Var, spec.beside))
    for position, name in zip(positions, names, strict=True):
        if isinstance(position, Var):
            add(needs, name, out.get(position.name, NOTHING))
    return needs


def _group_needs(
    op: Op, keys: tuple[str, ...], aggregates: tuple[p.AggregateSpec, ...], out: Needs
) -> Needs:
    """Returns the needs of a group: keys by identity, SUM and AVG by value, DISTINCT by identity.

    MIN and MAX need value and text, since any term may be least.
    """
    child = op.inputs[0]
    needs = merge({k: out.get(k, NOTHING) for k in keys}, _identity_needs(keys))
    for spec in aggregates:
        if spec.arg is None:
            if spec.distinct:
                needs = merge(needs, _identity_needs(child.variables))
            continue
        facets = Facet.ID if spec.distinct or spec.arg not in child.typed else Facet.NUM
        match spec.function:
            case AggregateFunction.SUM | AggregateFunction.AVG | AggregateFunction.SUM_REST:
                facets |= Facet.NUM
            case AggregateFunction.MIN | AggregateFunction.MAX:
                facets |= Facet.NUM | Facet.TEXT
            case AggregateFunction.GROUP_CONCAT:
                facets |= Facet.TEXT
            case AggregateFunction.SAMPLE | AggregateFunction.USER:
                facets |= Facet.NUM | Facet.TEXT
            case AggregateFunction.COUNT:
                facets |= Facet.ID if spec.arg not in child.typed else Facet.NUM
        add(needs, spec.arg, facets)
    return needs


def lift(expression: Expression, constants: list[Const]) -> Expression:
    """The expression with its constants replaced by parameters, appended to ``constants``."""
    match expression:
        case Const():
            constants.append(expression)
            return Param(len(constants) - 1)
        case Call(Function.CAST | Function.USER as function, (name, *args)):
            return Call(function, (name, *(lift(arg, constants) for arg in args)))
        case Call(function, args):
            return Call(function, tuple(lift(arg, constants) for arg in args))
        case _:
            return expression
