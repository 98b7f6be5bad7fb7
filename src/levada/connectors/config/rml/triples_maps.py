"""Reads the triples maps of RML as rows' terms (``levada.connectors.config.row_mapping``).

A triples map becomes triples, or quads, of terms that are parts: texts, and values of the columns
that its references name. A join is a triple whose object is a term of the rows of another triples
map. Faults are found here, before a row is read: a term without an expression, a literal as a
subject, a language tag or an IRI that is not well-formed, a term of the vocabulary that is not
supported.

A reference of JSON begins at the element that the iterator meets: ``$.a`` is the column ``@.a``.
Cost: Python objects a term, once for a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import pyoxigraph as ox

from levada.connectors.config.json_path import list_path, parse_iterator
from levada.connectors.config.rml.logical_source import CSV, JSON, LogicalSource, read_source
from levada.connectors.config.rml.mapping_graph import (
    DEFAULT_BASE,
    MappingGraph,
    Node,
    Term,
    local_name,
)
from levada.connectors.config.rml.templates import TemplateError, parse_template
from levada.connectors.config.rml.value_functions import FUNCTIONS, Formula, call
from levada.connectors.config.row_mapping import How, Part
from levada.connectors.config.row_mapping import Term as Parts
from levada.core.frozen import frozen
from levada.core.rdf_terms import RDF
from levada.errors import UsageError, near

LANGUAGE = r"(?:[A-Za-z]{2,8}|[xXiI](?:-[A-Za-z0-9]{1,8}))(?:-[A-Za-z0-9]{1,8})*"
"""A language tag that is well-formed by its syntax (BCP 47)."""
_IRI_CHARACTER = r"""(?:[^\x00-\x20<>"{}|^`\\%\[\]#\x7f-\x9f]|%[0-9A-Fa-f]{2})"""
IRI_REST = (
    rf"(?://(?:{_IRI_CHARACTER}*@)?\[[0-9A-Fa-f:.]+\])?{_IRI_CHARACTER}*(?:#{_IRI_CHARACTER}*)?"
)
"""The part of an IRI behind its scheme, or a relative IRI (RFC 3987)."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_IRIS = ("IRI", "URI", "UnsafeIRI")
_IRI_NOTATIONS: dict[str, How] = {
    "IRI": "iri_safe", "URI": "iri", "UnsafeIRI": "unsafe", "UnsafeIRI value": "unsafe",
}  # fmt: skip
_TRIPLES_MAP = (
    "logicalSource", "subjectMap", "subject", "predicateObjectMap", "baseIRI",
)  # fmt: skip
_EXPRESSION = ("constant", "reference", "template", "functionExecution")
_EXECUTION = ("function", "functionMap", "input")
_INPUT = ("parameter", "parameterMap", "inputValue", "inputValueMap")
_TERM = (*_EXPRESSION, "termType")
_SUBJECT = (*_TERM, "class", "graph", "graphMap")
_LITERAL = ("language", "languageMap", "datatype", "datatypeMap")
_OBJECT = (*_TERM, *_LITERAL)
_PREDICATE_OBJECT = (
    "predicate", "predicateMap", "object", "objectMap", "graph", "graphMap",
)  # fmt: skip
_JOINED = ("parentTriplesMap", "joinCondition")
_CONDITION = ("child", "parent", "childMap", "parentMap")
Pieces = tuple[tuple[str, bool], ...]


@frozen
class Join:
    """A triple whose object is the subject of another triples map, for the rows in which all
    conditions hold. ``terms``: subject, predicate and possibly graph. ``conditions``: pairs of
    texts, of the row and of that of the parent.
    """

    terms: tuple[Parts, ...]
    parent: str
    conditions: tuple[tuple[Parts, Parts], ...]


@frozen
class TriplesMap:
    """The triples, or quads, and the joins of the rows of a source. ``let``: the columns that
    functions make, with their formulas.
    """

    name: str
    source: LogicalSource
    subject: Parts
    triples: tuple[tuple[Parts, ...], ...]
    joins: tuple[Join, ...]
    let: tuple[tuple[str, str], ...] = ()


def read_triples_maps(graph: MappingGraph, base: str = "") -> tuple[TriplesMap, ...]:
    """Reads all triples maps. ``base``: of relative IRIs. Raises ``UsageError``."""
    nodes = [node for node in graph.nodes if _is_triples_map(graph, node)]
    if not nodes:
        raise graph.fault(
            "it has no triples map", hint="A triples map has rml:logicalSource and rml:subjectMap."
        )
    try:
        return tuple(_Reader(graph, node, number, base).read() for number, node in enumerate(nodes))
    except RecursionError:
        raise graph.fault("functions are nested too deeply", "functionExecution") from None


def _is_triples_map(graph: MappingGraph, node: Node) -> bool:
    names = {name for name, _ in graph.properties(node)}
    said = any(local_name(kind) == "TriplesMap" for kind in graph.types(node))
    return said or bool(names & {"logicalSource", "subjectMap", "predicateObjectMap"})


class _Reader:
    """Reads one triples map. ``number``: of it, in the labels of its blank nodes."""

    def __init__(self, graph: MappingGraph, node: Node, number: int, base: str) -> None:
        self.graph, self.node, self.number = graph, node, number
        self.name = str(node)
        self.let: dict[str, str] = {}
        for name in ("logicalTable", "tableName", "sqlQuery", "query"):
            if graph.values(node, name):
                said = f"rml:{name}, a source of SQL, is not supported"
                raise graph.fault(said, name, hint="Say rml:logicalSource with a file.")
        graph.check(node, "A triples map", _TRIPLES_MAP)
        own_base = graph.single(node, "A triples map", "baseIRI")
        self.base = own_base.value if isinstance(own_base, ox.NamedNode | ox.Literal) else base
        self.base = self.base or DEFAULT_BASE
        source = graph.single(node, "A triples map", "logicalSource")
        if source is None or isinstance(source, ox.Literal):
            raise graph.fault(f"the triples map {self.name} has no rml:logicalSource", self._at())
        self.source = read_source(graph, source)
        if self.source.formulation == JSON and self.source.iterator:
            _check_path(graph, self.source.iterator)

    def _at(self) -> str:
        """Returns a text of the mapping where the triples map is likely to begin."""
        if isinstance(self.node, ox.BlankNode):
            return "TriplesMap"
        return re.split(r"[#/]", self.node.value)[-1] or self.node.value

    def read(self) -> TriplesMap:
        """Returns the triples map."""
        graph = self.graph
        subject_map = graph.single(self.node, "A triples map", "subjectMap", "subject")
        if subject_map is None:
            raise graph.fault(f"the triples map {self.name} has no rml:subjectMap", self._at())
        if graph.values(self.node, "subject"):
            subject, classes = self._constant(subject_map, "subject"), []
            graphs: list[Parts | None] = []
        else:
            node = self._node(subject_map, "subjectMap")
            graph.check(node, "A subject map", _SUBJECT)
            subject = self._term(node, "subject")
            classes = [self._constant(value, "class") for value in graph.values(node, "class")]
            graphs = self._graphs(node)
        kind = (Part(f"<{RDF}type>"),)
        triples = [
            _quad((subject, kind, each), place) for each in classes for place in graphs or [None]
        ]
        joins = []
        for value in graph.values(self.node, "predicateObjectMap"):
            more, joined = self._predicate_objects(value, subject, graphs)
            triples += more
            joins += joined
        let = tuple(self.let.items())
        return TriplesMap(self.name, self.source, subject, tuple(triples), tuple(joins), let)

    def _predicate_objects(
        self, value: Term, subject: Parts, graphs: Sequence[Parts | None]
    ) -> tuple[list[tuple[Parts, ...]], list[Join]]:
        """Returns the triples and joins of a predicate-object map."""
        graph, node = self.graph, self._node(value, "predicateObjectMap")
        graph.check(node, "A predicate-object map", _PREDICATE_OBJECT)
        predicates = [self._constant(v, "predicate") for v in graph.values(node, "predicate")]
        for each in graph.values(node, "predicateMap"):
            inner = self._node(each, "predicateMap")
            graph.check(inner, "A predicate map", _TERM)
            predicates.append(self._term(inner, "predicate"))
        objects = [self._constant(v, "object") for v in graph.values(node, "object")]
        parents = []
        for each in graph.values(node, "objectMap"):
            inner = self._node(each, "objectMap")
            if graph.values(inner, "parentTriplesMap"):
                parents.append(inner)
            else:
                graph.check(inner, "An object map", _OBJECT)
                objects.append(self._term(inner, "object"))
        if not predicates or not (objects or parents):
            raise graph.fault(
                f"a predicate-object map of {self.name} has no "
                + ("object" if predicates else "predicate"),
                self._at(),
            )
        places = list(dict.fromkeys([*graphs, *self._graphs(node)])) or [None]
        return (
            [_quad((subject, p, o), place) for p, o, place in product(predicates, objects, places)],
            [
                self._join(_quad((subject, p), place), parent)
                for p, parent, place in product(predicates, parents, places)
            ],
        )

    def _graphs(self, node: Node) -> list[Parts | None]:
        """Returns the graphs of a map; None is the default graph."""
        graphs: list[Parts | None] = []
        for value in self.graph.values(node, "graph"):
            is_default = local_name(value) == "defaultGraph"
            graphs.append(None if is_default else self._constant(value, "graph"))
        for value in self.graph.values(node, "graphMap"):
            inner = self._node(value, "graphMap")
            self.graph.check(inner, "A graph map", _TERM)
            constant = self.graph.single(inner, "A graph map", "constant")
            is_default = local_name(constant) == "defaultGraph"
            graphs.append(None if is_default else self._term(inner, "graph"))
        return graphs

    def _join(self, terms: tuple[Parts, ...], node: Node) -> Join:
        """Returns a join."""
        graph = self.graph
        graph.check(node, "A referencing object map", _JOINED)
        parent = graph.single(node, "A referencing object map", "parentTriplesMap")
        if isinstance(parent, ox.Literal) or parent is None or not _is_triples_map(graph, parent):
            said = f"rml:parentTriplesMap {parent} is not a triples map"
            raise graph.fault(said, "parentTriplesMap")
        conditions = []
        other = _Reader(graph, parent, 0, self.base)
        for value in graph.values(node, "joinCondition"):
            condition = self._node(value, "joinCondition")
            graph.check(condition, "A join condition", _CONDITION)
            child = self._join_text(condition, "child")
            conditions.append((child, other._join_text(condition, "parent")))
        if not conditions and other.source != self.source:
            raise graph.fault(
                f"the join of {self.name} with {other.name} has no rml:joinCondition, and their "
                "sources differ",
                "parentTriplesMap",
            )
        return Join(terms, str(parent), tuple(conditions))

    def _join_text(self, condition: Node, side: str) -> Parts:
        """Returns the text that a join compares."""
        short = self.graph.single(condition, "A join condition", side)
        node = self.graph.single(condition, "A join condition", f"{side}Map")
        if (short is None) == (node is None):
            said = f"a join condition has one rml:{side} or rml:{side}Map"
            raise self.graph.fault(said, "joinCondition")
        if isinstance(short, ox.Literal):
            pieces: Pieces = ((short.value, True),)
        elif node is not None:
            inner = self._node(node, f"{side}Map")
            self.graph.check(inner, f"A {side} map", _EXPRESSION)
            value = self._expression(inner, f"{side}Map")
            if value is None:
                raise self.graph.fault(f"rml:{side}Map has no expression", f"{side}Map")
            pieces = ((value.value, False),) if isinstance(value, Term) else value[0]
        else:
            raise self.graph.fault(f"rml:{side} is not a text", side)
        return tuple(
            Part(self._column(text), "raw") if is_name else Part(text) for text, is_name in pieces
        )

    # -- terms --

    def _node(self, value: Term, name: str) -> Node:
        if isinstance(value, ox.Literal):
            raise self.graph.fault(f"rml:{name} is a text, not a map", name)
        return value

    def _constant(self, value: Term, position: str) -> Parts:
        """Returns a constant term. Raises ``UsageError`` for one that cannot be in its position."""
        graph = self.graph
        if isinstance(value, ox.BlankNode):
            raise graph.fault(f"the constant of a {position} is a blank node", position)
        if isinstance(value, ox.Literal) and position != "object":
            said = f"the constant {value} of a {position} is a literal, not an IRI"
            raise graph.fault(said, value.value)
        if isinstance(value, ox.Literal) and value.language:
            self._check_language(value.language)
        return (Part(str(value)),)

    def _expression(self, node: Node, what: str) -> Term | tuple[Pieces, bool] | None:
        """Returns the constant of a map, or its texts and references and whether they are a
        template; None without an expression.
        """
        graph = self.graph
        said = [(n, v) for n, v in graph.properties(node) if n in _EXPRESSION]
        if len(said) > 1:
            names = " and ".join(f"rml:{name}" for name, _ in said)
            raise graph.fault(f"rml:{what} has {names}: it has one of them", said[1][0])
        if not said:
            return None
        name, value = said[0]
        if name == "constant":
            return value
        if name == "functionExecution":
            formula = self._call(self._node(value, name)).as_text
            column = f"\x1ffunction {formula}"
            self.let[column] = formula
            return ((column, True),), False
        if not isinstance(value, ox.Literal):
            raise graph.fault(f"rml:{name} is not a text", name)
        if name == "reference":
            return ((value.value, True),), False
        try:
            return parse_template(value.value), True
        except TemplateError as error:
            hint = r"Write \\{ and \\} for braces that are text, and \\\\ for a backslash."
            said_ = f"the template {value.value}: {error}"
            raise graph.fault(said_, _in_turtle(value.value), hint=hint) from error

    def _call(self, node: Node) -> Formula:
        """Returns the formula of a call of a function."""
        graph = self.graph
        graph.check(node, "A function execution", _EXECUTION)
        function = graph.single(node, "A function execution", "function")
        if function is None and (
            inner := graph.single(node, "A function execution", "functionMap")
        ):
            function = graph.single(self._node(inner, "functionMap"), "A function map", "constant")
        name = function.value if isinstance(function, ox.NamedNode) else str(function)
        if name not in FUNCTIONS:
            shown = name.replace("#", "/").rpartition("/")[2]
            hint = near(name, FUNCTIONS)
            raise graph.fault(f"the function {name} is not supported", shown, hint=hint)
        arguments = {}
        for value in graph.values(node, "input"):
            each = self._node(value, "input")
            graph.check(each, "An input", _INPUT)
            parameter = self._shortcut(each, "parameter")
            shown = parameter.value if isinstance(parameter, ox.NamedNode) else str(parameter)
            arguments[shown.replace("#", "/").rpartition("/")[2]] = self._argument(each)
        try:
            return call(FUNCTIONS[name], arguments)
        except KeyError as error:
            raise graph.fault(f"the function {name} needs {error.args[0]}", "function") from error
        except ValueError as error:
            raise graph.fault(f"the function {name} has no {error}", str(error)) from error

    def _shortcut(self, node: Node, name: str) -> Term | None:
        """Returns the constant of a property, or of its map."""
        value = self.graph.single(node, "A function execution", name)
        inner = self.graph.single(node, "A function execution", f"{name}Map")
        if value is None and inner is not None:
            return self.graph.single(self._node(inner, f"{name}Map"), f"A {name} map", "constant")
        return value

    def _argument(self, node: Node) -> Formula:
        """Returns the formula of the value of an input."""
        graph = self.graph
        value = graph.single(node, "An input", "inputValue")
        if value is not None:
            return Formula(repr(value.value))
        inner = graph.single(node, "An input", "inputValueMap")
        if inner is None:
            raise graph.fault("an input has no rml:inputValueMap", "input")
        at = self._node(inner, "inputValueMap")
        if execution := graph.single(at, "An input value map", "functionExecution"):
            return self._call(self._node(execution, "functionExecution"))
        graph.check(at, "An input value map", _TERM)
        expression = self._expression(at, "inputValueMap")
        if expression is None:
            raise graph.fault("rml:inputValueMap has no expression", "inputValueMap")
        if isinstance(expression, Term):
            return Formula(repr(expression.value))
        return Formula(f"({' + '.join(self._operand(*each) for each in expression[0])})")

    def _operand(self, text: str, is_name: bool) -> str:
        if not is_name:
            return repr(text)
        column = self._column(text)
        if self.source.formulation == JSON and list_path(column):
            said = f"the reference {text} of a function has several values"
            raise self.graph.fault(said, text, hint="Say a reference with one value.")
        return f"column({column!r})"

    def _term(self, node: Node, position: str) -> Parts:
        """Returns the term of a term map."""
        graph, what = self.graph, f"{position}Map"
        kind = self._term_type(node, position)
        value = self._expression(node, what)
        if isinstance(value, Term):
            return self._constant(value, position)
        if value is None:
            if kind != "BlankNode":
                raise graph.fault(
                    f"rml:{what} of {self.name} has no rml:constant, rml:reference or rml:template",
                    what,
                )
            return (Part(f"_:r{self.number}x"), Part("", "row"))
        pieces, is_template = value
        if kind == "Literal":
            return self._literal(node, pieces, is_template)
        if kind == "BlankNode":
            return (Part("_:b"), *(self._part(text, name, "label") for text, name in pieces))
        return self._iri(pieces, kind if is_template else f"{kind} value")

    def _term_type(self, node: Node, position: str) -> str:
        """Returns the name of the term type."""
        graph, what = self.graph, f"{position}Map"
        term_type = graph.single(node, f"rml:{what}", "termType")
        is_literal = position == "object" and (
            graph.values(node, "reference", "functionExecution", *_LITERAL)
        )
        kind = ("Literal" if is_literal else "IRI") if term_type is None else local_name(term_type)
        allowed = {
            "subject": (*_IRIS, "BlankNode"),
            "predicate": _IRIS,
            "object": (*_IRIS, "BlankNode", "Literal"),
            "graph": (*_IRIS, "BlankNode"),
            "datatype": _IRIS,
        }[position]
        if kind not in allowed:
            shown = f"rml:{kind}" if kind else str(term_type)
            hint = near(kind, allowed)
            raise graph.fault(
                f"rml:termType {shown} of a {position} is not supported", kind, hint=hint
            )
        if kind != "Literal" and graph.values(node, *_LITERAL):
            name = next(name for name, _ in graph.properties(node) if name in _LITERAL)
            raise graph.fault(f"rml:{name} is for literals, not rml:{kind}", name)
        return kind

    def _iri(self, pieces: Pieces, kind: str) -> Parts:
        """Returns an IRI, with the base before a relative one."""
        how = _IRI_NOTATIONS.get(kind, "whole")
        first, is_name = pieces[0]
        parts = [self._part(text, name, how) for text, name in pieces]
        if not is_name and _SCHEME.match(first):
            before = []
        elif how in ("whole", "unsafe") or any(":" in text for text, name in pieces if not name):
            before = [Part(self.base, "base")]  # the values say whether it is relative
        else:
            before = [Part(self.base)]
        term = (Part("<"), *before, *parts, Part(">"))
        if how != "unsafe":
            self._check_iri(term, pieces)
        return term

    def _check_iri(self, term: Parts, pieces: Pieces) -> None:
        text = "".join(part.text if part.how == "text" else "0" for part in term)
        if not re.fullmatch(f"<{_SCHEME.pattern}{IRI_REST}>|<{IRI_REST}>", text):
            shown = "".join(text if not is_name else f"{{{text}}}" for text, is_name in pieces)
            raise self.graph.fault(f"the template {shown} is not that of an IRI", _in_turtle(shown))

    def _literal(self, node: Node, pieces: Pieces, is_template: bool) -> Parts:
        """Returns a literal with its language or datatype."""
        graph = self.graph
        language = graph.single(node, "A term map", "language", "languageMap")
        datatype = graph.single(node, "A term map", "datatype", "datatypeMap")
        if language is not None and datatype is not None:
            raise graph.fault("a literal has a language or a datatype, not both", "datatype")
        if language is None and datatype is None and not is_template:
            return (self._part(pieces[0][0], True, "natural"),)
        parts = [self._part(text, name, "literal") for text, name in pieces]
        return (Part('"'), *parts, *self._suffix(node, language, datatype))

    def _suffix(self, node: Node, language: Term | None, datatype: Term | None) -> Parts:
        """Returns what follows the text of a literal."""
        graph = self.graph
        if language is not None:
            value = language
            if graph.values(node, "languageMap"):
                inner = self._node(language, "languageMap")
                graph.check(inner, "A language map", _EXPRESSION)
                expression = self._expression(inner, "languageMap")
                if expression is None:
                    raise graph.fault("rml:languageMap has no expression", "languageMap")
                if not isinstance(expression, Term):
                    parts = [self._part(t, name, "language") for t, name in expression[0]]
                    return (Part('"@'), *parts)
                value = expression
            if not isinstance(value, ox.Literal):
                raise graph.fault(f"the language {value} is not a text", "language")
            self._check_language(value.value)
            return (Part(f'"@{value.value}'),)
        if datatype is None:
            return (Part('"'),)
        if graph.values(node, "datatypeMap"):
            inner = self._node(datatype, "datatypeMap")
            graph.check(inner, "A datatype map", _TERM)
            return (Part('"^^'), *self._term(inner, "datatype"))
        if not isinstance(datatype, ox.NamedNode):
            raise graph.fault(f"the datatype {datatype} is not an IRI", "datatype")
        return (Part(f'"^^{datatype}'),)

    def _check_language(self, tag: str) -> None:
        if not re.fullmatch(LANGUAGE, tag):
            said = f"the language tag {tag} is not well-formed"
            raise self.graph.fault(said, tag, hint="Say a tag such as en or de-CH.")

    def _part(self, text: str, is_name: bool, how: How) -> Part:
        if is_name:
            return Part(self._column(text), how)
        if how == "label":
            return Part(label_of(text))
        return Part(escape(text) if how in ("literal", "natural") else text)

    def _column(self, reference: str) -> str:
        """Returns the column that a reference names."""
        if reference in self.let:
            return reference
        if self.source.formulation == JSON:
            column = f"@{reference[1:]}" if reference.startswith("$") else reference
            _check_path(self.graph, reference, column)
            return column
        if self.source.formulation == CSV and not reference:
            raise self.graph.fault("a reference is empty", "reference")
        return reference


def _check_path(graph: MappingGraph, path: str, column: str = "") -> None:
    """Checks that a JSONPath is one that is supported."""
    try:
        parse_iterator(f"${column[1:]}" if column.startswith("@") else path)
    except UsageError as error:
        raise graph.fault(error.message.rstrip("."), path, hint=error.hint) from error


def _quad(terms: tuple[Parts, ...], graph: Parts | None) -> tuple[Parts, ...]:
    return terms if graph is None else (*terms, graph)


def escape(text: str) -> str:
    """Returns a text as within the quotes of N-Triples."""
    for raw, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(raw, written)
    return text


def label_of(text: str) -> str:
    """Returns a text as part of the label of a blank node; the labels of different texts differ.

    >>> label_of("a b"), label_of("a_20_b")
    ('a_20_b', 'a_5f_20_5f_b')
    """
    return re.sub("[^A-Za-z0-9]", lambda match: f"_{match[0].encode().hex()}_", text)


def _in_turtle(text: str) -> str:
    """Returns a text as it is written in Turtle."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
