"""Reads the RDF of a mapping file as nodes with their properties.

The terms of RML (``http://w3id.org/rml/``), of the older RML (``http://semweb.mmlab.be/ns/rml#``,
``ql#`` and ``fnml#``) and of R2RML have one name each, without a namespace: ``template`` is
``rml:template`` and ``rr:template``. A property of these vocabularies that a node cannot have is
refused with its name and its line. Properties of other vocabularies are ignored. Cost: Python
objects a triple, once for a file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyoxigraph as ox

from levada.core.rdf_terms import RDF
from levada.errors import UsageError, near

RML = "http://w3id.org/rml/"
NAMESPACES = (
    RML,
    "http://semweb.mmlab.be/ns/rml#",
    "http://semweb.mmlab.be/ns/ql#",
    "http://www.w3.org/ns/r2rml#",
    "http://semweb.mmlab.be/ns/fnml#",
)
DEFAULT_BASE = "http://example.com/"
"""The base of relative IRIs if neither the mapping nor the user names one: that of the test cases
of the community group.
"""
MAX_BYTES = 10_000_000
"""The most bytes of a mapping file."""
RDF_FORMATS = {
    ".ttl": ox.RdfFormat.TURTLE, ".rml": ox.RdfFormat.TURTLE, ".r2rml": ox.RdfFormat.TURTLE,
    ".n3": ox.RdfFormat.TURTLE, ".nt": ox.RdfFormat.N_TRIPLES, ".rdf": ox.RdfFormat.RDF_XML,
}  # fmt: skip
_OTHER_NAMES = {
    "column": "reference", "RefObjectMap": "ReferencingObjectMap",
    "execution": "functionExecution", "valueMap": "inputValueMap", "value": "inputValue",
}  # fmt: skip
Term = ox.NamedNode | ox.BlankNode | ox.Literal
Node = ox.NamedNode | ox.BlankNode


def local_name(term: object) -> str:
    """Returns the name of a term of the vocabularies; an empty text for another term.

    >>> local_name(ox.NamedNode("http://www.w3.org/ns/r2rml#column"))
    'reference'
    """
    if not isinstance(term, ox.NamedNode):
        return ""
    for namespace in NAMESPACES:
        if term.value.startswith(namespace):
            local = term.value.removeprefix(namespace)
            return _OTHER_NAMES.get(local, local)
    return ""


class MappingGraph:
    """The statements of a mapping file. ``text`` is its text, in which lines are found."""

    def __init__(self, path: str, text: str, triples: Sequence[ox.Triple]) -> None:
        self.path, self.text = path, text
        self._properties: dict[Node, list[tuple[ox.NamedNode, Term]]] = {}
        for triple in triples:
            subject, value = triple.subject, triple.object
            if isinstance(subject, Node) and isinstance(value, Term):
                self._properties.setdefault(subject, []).append((triple.predicate, value))

    @property
    def nodes(self) -> list[Node]:
        """All nodes that are subjects, in the order of their first statement."""
        return list(self._properties)

    def properties(self, node: Node) -> Iterator[tuple[str, Term]]:
        """Yields the properties of the vocabularies that a node has, with their values."""
        for predicate, value in self._properties.get(node, ()):
            if name := local_name(predicate):
                yield name, value

    def values(self, node: Node, *names: str) -> list[Term]:
        """Returns the values of these properties."""
        return [value for name, value in self.properties(node) if name in names]

    def types(self, node: Node) -> list[ox.NamedNode]:
        """Returns the classes of a node."""
        return [
            value
            for predicate, value in self._properties.get(node, ())
            if predicate.value == f"{RDF}type" and isinstance(value, ox.NamedNode)
        ]

    def foreign_values(self, node: Node) -> list[tuple[str, Term]]:
        """Returns the properties of other vocabularies, by their IRIs."""
        return [
            (predicate.value, value)
            for predicate, value in self._properties.get(node, ())
            if not local_name(predicate) and predicate.value != f"{RDF}type"
        ]

    def single(self, node: Node, what: str, *names: str) -> Term | None:
        """Returns the only value of these properties; None without one. Raises ``UsageError`` for
        several.
        """
        values = self.values(node, *names)
        if len(values) > 1:
            raise self.fault(f"{what} has {len(values)} values of rml:{names[0]}", names[0])
        return values[0] if values else None

    def check(self, node: Node, what: str, allowed: Collection[str]) -> None:
        """Checks that a node has no other properties of the vocabularies."""
        for name, _ in self.properties(node):
            if name not in allowed:
                said = f"{what} has rml:{name}, which is not supported"
                raise self.fault(said, name, hint=near(name, allowed))

    def fault(self, message: str, at: str = "", *, hint: str = "") -> UsageError:
        """Returns an error of the mapping with the first line that contains ``at``."""
        line = self.line_of(at)
        place = f", line {line}" if line else ""
        return UsageError(f"The mapping {self.path}{place}: {message}.", hint=hint)

    def line_of(self, name: str) -> int:
        """Returns the first line with a name or a text, counted from 1; 0 without one."""
        if not name:
            return 0
        begin = r"(?<![\w-])" if name[0].isalnum() else ""
        end = r"(?![\w-])" if name[-1].isalnum() else ""
        match = re.search(f"{begin}{re.escape(name)}{end}", self.text)
        return self.text.count("\n", 0, match.start()) + 1 if match else 0


def read_text(path: Path) -> str:
    """Reads the text of a mapping file. Raises ``UsageError``."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"The mapping {path} has more than {MAX_BYTES >> 20} MB.")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"The mapping {path} cannot be read: {reason}.") from error


def parse_graph(path: str, text: str, suffix: str = ".ttl", base: str = "") -> MappingGraph:
    """Parses the RDF of a mapping. Raises ``UsageError`` with the place of a fault."""
    form = RDF_FORMATS.get(suffix.lower(), ox.RdfFormat.TURTLE)
    takes_base = form != ox.RdfFormat.N_TRIPLES
    try:
        quads = ox.parse(
            text.encode(), form, base_iri=(base or DEFAULT_BASE) if takes_base else None
        )
        return MappingGraph(path, text, [quad.triple for quad in quads])
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno else ""
        raise UsageError(f"The mapping {path}{place}: {error.msg}.") from error
    except UnicodeEncodeError as error:  # an escape of YAML or JSON
        raise UsageError(f"The mapping {path} has half of a surrogate pair.") from error
    except ValueError as error:
        raise UsageError(f"The mapping {path}: {error}.") from error
