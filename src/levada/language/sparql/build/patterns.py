"""Builds graph patterns: triples with their abbreviations, paths, groups (SPARQL 1.1, sections 4.2,
5 to 10).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lark import Token

from levada.core.rdf_terms import RDF, Iri, Literal
from levada.errors import Span
from levada.language.sparql import ast
from levada.language.sparql.build.expressions import Expressions


class Nested(NamedTuple):
    """A list or a blank node property list: its node, and its triples."""

    node: ast.Node
    triples: tuple[ast.Triple, ...]


Objects = tuple[ast.Verb, tuple["ast.Node | Nested", ...]]


def _node(item: ast.Node | Nested) -> ast.Node:
    return item.node if isinstance(item, Nested) else item


def _triples_about(subject: ast.Node, properties: tuple[Objects, ...]) -> tuple[ast.Triple, ...]:
    """Yields each triple in the text's order, those of a nested object after the one that mentions
    it.
    """
    out: list[ast.Triple] = []
    for verb, objects in properties:
        for item in objects:
            out.append(ast.Triple(subject, verb, _node(item)))
            if isinstance(item, Nested):
                out += item.triples
    return tuple(out)


class Patterns(Expressions):
    """Builds triples, paths and graph patterns."""

    # --- triples

    def triples(self, *parts: tuple[ast.Triple, ...]) -> ast.Triples:
        """Builds triples with their abbreviations expanded."""
        return ast.Triples(tuple(triple for part in parts for triple in part))

    def node_triples(
        self, subject: ast.Node, properties: tuple[Objects, ...]
    ) -> tuple[ast.Triple, ...]:
        """``?s ?p ?o ; ?q ?r``."""
        return _triples_about(subject, properties)

    def collection_triples(
        self, subject: Nested, properties: tuple[Objects, ...] | None
    ) -> tuple[ast.Triple, ...]:
        """``(1 2) ?p ?o`` and ``[ ?p ?o ] ?q ?r``."""
        return subject.triples + _triples_about(subject.node, properties or ())

    property_list_triples = collection_triples

    def property_list(self, *properties: Objects) -> tuple[Objects, ...]:
        """Verbs with their objects."""
        return properties

    def verb_objects(self, verb: ast.Verb, *objects: ast.Node | Nested) -> Objects:
        """A verb with its objects."""
        return (verb, objects)

    def collection(self, opening: Token, *items: ast.Node | Nested) -> Nested:
        """``(a b)``: a chain of rdf:first and rdf:rest."""
        span = self._span(opening)
        cells: list[ast.Node] = [self._fresh(span) for _ in items]
        ends = [*cells[1:], self._rdf("nil", span)]
        out: list[ast.Triple] = []
        for cell, item, rest in zip(cells, items, ends, strict=True):
            out += _triples_about(
                cell, ((self._rdf("first", span), (item,)), (self._rdf("rest", span), (rest,)))
            )
        return Nested(cells[0], tuple(out))

    def blank_node_properties(self, opening: Token, properties: tuple[Objects, ...]) -> Nested:
        """``[ ?p ?o ]``."""
        node = self._fresh(self._span(opening))
        return Nested(node, _triples_about(node, properties))

    def _rdf(self, name: str, span: Span) -> ast.Constant:
        return ast.Constant(Iri(RDF + name), span)

    # --- property paths

    def rdf_type(self, token: Token) -> ast.Constant:
        """``a``."""
        return self._rdf("type", self._span(token))

    def path_alternative(self, *choices: ast.Path) -> ast.PathAlternative:
        """``a|b``."""
        return ast.PathAlternative(choices, choices[0].span)

    def path_sequence(self, *steps: ast.Path) -> ast.PathSequence:
        """``a/b``."""
        return ast.PathSequence(steps, steps[0].span)

    def path_inverse(self, path: ast.Path) -> ast.PathInverse:
        """``^a``."""
        return ast.PathInverse(path, path.span)

    path_inverse_one = path_inverse

    def path_repeat(self, path: ast.Path, times: Token) -> ast.PathRepeat:
        """``a*``, ``a+``, ``a?``."""
        return ast.PathRepeat(path, str(times), path.span)

    def path_negated(self, bang: Token, *forbidden: ast.Path) -> ast.PathNegated:
        """``!a``, ``!(a|^b)``."""
        return ast.PathNegated(forbidden, self._span(bang))

    # --- groups

    def group(self, opening: Token, *elements: ast.Element) -> ast.Group:
        """``{ ... }``."""
        return ast.Group(elements, self._span(opening))

    def optional(self, token: Token, group: ast.Group) -> ast.Optional:
        """OPTIONAL."""
        return ast.Optional(group, self._span(token))

    def union(self, *branches: ast.Group) -> ast.Union:
        """Builds UNION; a single group is not a union and does not come here."""
        return ast.Union(branches)

    def minus(self, token: Token, group: ast.Group) -> ast.Minus:
        """MINUS."""
        return ast.Minus(group, self._span(token))

    def graph(self, token: Token, name: ast.Name, group: ast.Group) -> ast.Graph | ast.Window:
        """GRAPH."""
        return ast.Graph(name, group, self._span(token))

    def service(
        self, token: Token, silent: Token | None, name: ast.Name, group: ast.Group
    ) -> ast.Service:
        """SERVICE."""
        return ast.Service(name, silent is not None, group, self._span(token))

    def filter(self, token: Token, condition: ast.Expression) -> ast.Filter:
        """FILTER."""
        return ast.Filter(condition, self._span(token))

    def bind(self, token: Token, expression: ast.Expression, variable: ast.Var) -> ast.Bind:
        """BIND."""
        return ast.Bind(expression, variable, self._span(token))

    # --- inline data

    def values(
        self,
        token: Token,
        block: tuple[tuple[ast.Var, ...], tuple[tuple[Iri | Literal | None, ...], ...]],
    ) -> ast.InlineData:
        """VALUES; each row has a value for each variable."""
        variables, rows = block
        for number, row in enumerate(rows, 1):
            if len(row) != len(variables):
                message = (
                    f"Row {number} of VALUES does not have one value per variable: "
                    f"{len(row)} for {len(variables)}."
                )
                raise self._error(message, self._span(token))
        return ast.InlineData(variables, rows, self._span(token))

    trailing_values = values

    def one_variable(self, variable: ast.Var, *values: Any) -> tuple[Any, ...]:
        """``?x { 1 2 }``."""
        return (variable,), tuple(self.data_row(value) for value in values)

    def many_variables(self, names: Any, *rows: Any) -> tuple[Any, ...]:
        """Builds ``(?x ?y) { (1 2) }``; no variables and empty rows are NIL tokens."""
        variables = () if isinstance(names, Token) else names
        return variables, rows

    def names(self, *variables: ast.Var) -> tuple[ast.Var, ...]:
        """The variables of VALUES."""
        return variables

    def data_row(self, *values: Any) -> tuple[Iri | Literal | None, ...]:
        """A row of VALUES."""
        return tuple(value and value.term for value in values if not isinstance(value, Token))

    def undef(self) -> None:
        """UNDEF."""
        return
