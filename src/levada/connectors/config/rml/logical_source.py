"""Describes the sources of triples maps (RML-IO), and reads them from a mapping."""

from __future__ import annotations

from pathlib import PurePosixPath

import pyoxigraph as ox

from levada.connectors.config.rml.mapping_graph import MappingGraph, Node, Term, local_name
from levada.core.frozen import frozen

CSV, JSON, XML = "csv", "json", "xml"
_FORMULATIONS = {
    "CSV": CSV, "JSONPath": JSON, "XPath": XML, "XPathReferenceFormulation": XML,
}  # fmt: skip
_ENCODINGS = {"UTF-8": "utf-8", "UTF-16": "utf-16"}
_COMPRESSIONS = ("none", "gzip", "zip", "targz", "tarxz", "zstd")
_SOURCE = ("source", "referenceFormulation", "iterator", "namespace")
_FILE = ("path", "root", "encoding", "compression", "null")
_CSVW = "http://www.w3.org/ns/csvw#"
_MAPPING, _WORKING = "MappingDirectory", "CurrentWorkingDirectory"
MAPPING, WORKING = "", "."


@frozen
class LogicalSource:
    """A file, and what its rows are. ``root``: the folder of ``path``, which is ``MAPPING`` or
    ``WORKING`` or the path of a folder. ``nulls``: texts that are no values. ``separator``: of CSV.
    """

    path: str
    formulation: str
    iterator: str = ""
    root: str = ""
    encoding: str = "utf-8"
    compression: str = ""
    nulls: tuple[str, ...] = ()
    namespaces: tuple[tuple[str, str], ...] = ()
    separator: str = ","


def read_source(graph: MappingGraph, node: Node) -> LogicalSource:
    """Reads a logical source. Raises ``UsageError``."""
    graph.check(node, "A logical source", _SOURCE)
    source = graph.single(node, "A logical source", "source")
    if source is None:
        raise graph.fault("a logical source has no rml:source", "logicalSource")
    file = _read_file(graph, source)
    formulation, namespaces = _formulation(graph, node, file)
    iterator = _text(graph, node, "iterator")
    if formulation == CSV and iterator:
        raise graph.fault("a source of CSV has no rml:iterator", iterator, hint="Leave it out.")
    return LogicalSource(
        file["path"],
        formulation,
        iterator,
        file["root"],
        file["encoding"],
        file["compression"],
        tuple(_texts(graph, source, "null")),
        namespaces,
        _separator(graph, source) or ("\t" if _suffix(file["path"]) == ".tsv" else ","),
    )


def _read_file(graph: MappingGraph, source: Term) -> dict[str, str]:
    """Returns the path, root, encoding and compression of a source."""
    if isinstance(source, ox.Literal):
        return {"path": source.value, "root": MAPPING, "encoding": "utf-8", "compression": ""}
    graph.check(source, "A source", _FILE)
    path = _text(graph, source, "path") or _address(graph, source)
    encoding = _word(graph, source, "encoding", _ENCODINGS) or "UTF-8"
    return {
        "path": path,
        "root": _root(graph, source),
        "encoding": _ENCODINGS[encoding],
        "compression": _word(graph, source, "compression", _COMPRESSIONS),
    }


def _address(graph: MappingGraph, source: Node) -> str:
    """Returns the path in a description by DCAT or CSVW. Raises ``UsageError``."""
    for predicate, value in graph.foreign_values(source):
        if predicate.endswith(("/ns/csvw#url", "/ns/dcat#downloadURL", "/ns/dcat#accessURL")):
            return _local_path(graph, value.value if hasattr(value, "value") else "")
    kinds = [kind.value for kind in graph.types(source) if not local_name(kind)]
    said = f"a source of the kind {kinds[0]}" if kinds else "a source without rml:path"
    at = kinds[0].replace("#", "/").rpartition("/")[2] if kinds else "source"
    raise graph.fault(f"{said} is not supported", at, hint="Say rml:path with the name of a file.")


def _separator(graph: MappingGraph, source: Term) -> str:
    """Returns the character between fields in a description by CSVW; an empty text without one.
    Raises ``UsageError`` for a part of CSVW that is not supported.
    """
    separator = ""
    nodes = [] if isinstance(source, ox.Literal) else [source]
    for node in nodes:  # grows
        for predicate, value in graph.foreign_values(node):
            name = predicate.removeprefix(_CSVW)
            if name == "dialect" and not isinstance(value, ox.Literal):
                nodes.append(value)
            elif name == "delimiter" and isinstance(value, ox.Literal) and len(value.value) == 1:
                separator = value.value
            elif predicate.startswith(_CSVW) and name != "url":
                hint = "Say csvw:url, and csvw:dialect with a csvw:delimiter of one character."
                raise graph.fault(f"csvw:{name} {value} is not supported", name, hint=hint)
    return separator


def _local_path(graph: MappingGraph, address: str) -> str:
    """Returns the path of an address. Raises ``UsageError`` for one of the network."""
    if address.startswith("file://"):
        return address.removeprefix("file://")
    if "://" in address:
        raise graph.fault(
            f"the source {address} is not a file: nothing is fetched",
            address,
            hint="Save it as a file in the folder of the mapping, and say rml:path.",
        )
    return address


def _root(graph: MappingGraph, source: Node) -> str:
    root = graph.single(source, "A source", "root")
    if root is None or local_name(root) == _MAPPING:
        return MAPPING
    if local_name(root) == _WORKING:
        return WORKING
    if isinstance(root, ox.Literal):
        return root.value
    said = f"rml:root is rml:{_MAPPING}, rml:{_WORKING} or the text of a path"
    raise graph.fault(said, "root")


def _formulation(
    graph: MappingGraph, node: Node, file: dict[str, str]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Returns how references are written, with the prefixes of XML names."""
    formulation = graph.single(node, "A logical source", "referenceFormulation")
    if formulation is None:
        by_name = {".csv": CSV, ".tsv": CSV, ".json": JSON, ".xml": XML}
        if _suffix(file["path"]) not in by_name:
            raise graph.fault(
                "a logical source has no rml:referenceFormulation",
                "logicalSource",
                hint="Say rml:CSV, rml:JSONPath or rml:XPath.",
            )
        return by_name[_suffix(file["path"])], ()
    name = local_name(formulation)
    if isinstance(formulation, ox.BlankNode | ox.NamedNode) and name not in _FORMULATIONS:
        names = [local_name(kind) for kind in graph.types(formulation)]
        name = next((each for each in names if each in _FORMULATIONS), name)
    if name not in _FORMULATIONS:
        said = (name and f"rml:{name}") or str(formulation)
        raise graph.fault(
            f"the reference formulation {said} is not supported",
            name or "referenceFormulation",
            hint="Say rml:CSV, rml:JSONPath or rml:XPath.",
        )
    prefixes = []
    if not isinstance(formulation, ox.Literal):
        graph.check(formulation, "A reference formulation", ("namespace",))
        for namespace in graph.values(formulation, "namespace"):
            assert not isinstance(namespace, ox.Literal), "a namespace is a node"
            graph.check(namespace, "A namespace", ("namespacePrefix", "namespaceURL"))
            prefix = _text(graph, namespace, "namespacePrefix")
            address = _text(graph, namespace, "namespaceURL")
            if not prefix or not address:
                said = "a namespace needs rml:namespacePrefix and rml:namespaceURL"
                raise graph.fault(said, "namespace")
            prefixes.append((prefix, address))
    return _FORMULATIONS[name], tuple(sorted(prefixes))


def _suffix(path: str) -> str:
    """Returns the extension that says the format, behind those of compression."""
    for packed in (".gz", ".zst", ".zip", ".tar.gz", ".tar.xz"):
        path = path.removesuffix(packed)
    return PurePosixPath(path).suffix.lower()


def _word(graph: MappingGraph, node: Node, name: str, words: object) -> str:
    """Returns the name of a value that is one of the words of the vocabulary."""
    value = graph.single(node, "A source", name)
    if value is None:
        return ""
    word = local_name(value)
    assert isinstance(words, dict | tuple), "the words are a collection"
    if word not in words:
        shown = f"rml:{word}" if word else str(value)
        hint = "Say " + " or ".join(f"rml:{each}" for each in words) + "."
        raise graph.fault(f"rml:{name} {shown} is not supported", word or name, hint=hint)
    return word


def _text(graph: MappingGraph, node: Node, name: str) -> str:
    """Returns the text of a property; an empty text without one. Raises ``UsageError``."""
    value = graph.single(node, "A source", name)
    if value is None:
        return ""
    if not isinstance(value, ox.Literal):
        raise graph.fault(f"rml:{name} is not a text", name)
    return value.value


def _texts(graph: MappingGraph, source: Term, name: str) -> list[str]:
    if isinstance(source, ox.Literal):
        return []
    texts = []
    for value in graph.values(source, name):
        if not isinstance(value, ox.Literal):
            raise graph.fault(f"rml:{name} is not a text", name)
        texts.append(value.value)
    return sorted(texts)
