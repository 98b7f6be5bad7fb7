"""Reads XML as rows: the elements that an XPath meets, with lists of the texts at other XPaths.

A document with declarations of entities is refused, and neither a DTD nor the network is read. An
expression is XPath 1.0 and bounded. Cost: Python objects a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from lxml import etree

from levada.connectors.config.rml.logical_source import LogicalSource
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.core.array_types import Bytes
from levada.errors import SourceError, UsageError

MAX_EXPRESSION, MAX_SEARCHES = 1000, 4
"""The most characters of an XPath, and the most of its steps that search a whole tree."""
_LINE = "\x1fline"
_SEARCH = re.compile(r"//|(?:descendant|following|preceding|ancestor)[\w-]*::")


def compile_xpath(expression: str, namespaces: Sequence[tuple[str, str]]) -> etree.XPath:
    """Compiles an XPath. Raises ``UsageError``."""
    if len(expression) > MAX_EXPRESSION or len(_SEARCH.findall(expression)) > MAX_SEARCHES:
        raise UsageError(
            f"The XPath {expression[:80]} is too expensive.",
            hint=f"Say at most {MAX_SEARCHES} steps such as //, and {MAX_EXPRESSION} characters.",
        )
    try:
        return etree.XPath(expression, namespaces=dict(namespaces) or None, regexp=False)
    except (etree.XPathError, ValueError, TypeError) as error:
        raise UsageError(f"The XPath {expression} is not well-formed: {error}.") from error


def xml_rows(data: Bytes, needed: Sequence[str], source: LogicalSource, name: str) -> RawRows:
    """Reads columns, possibly lists, of the elements of a document. Raises ``SourceError`` for a
    document that is not XML.
    """
    elements = compile_xpath(source.iterator, source.namespaces)
    columns = {each: compile_xpath(each, source.namespaces) for each in needed}
    root = _parse(data.tobytes(), name)
    rows = _evaluate(elements, root, name)
    if not isinstance(rows, list) or not all(isinstance(row, etree._Element) for row in rows):
        raise SourceError(f"The iterator {source.iterator} meets values, not elements.")
    lists = {
        each: [_texts(_evaluate(path, row, name)) for row in rows] for each, path in columns.items()
    }
    lines = [row.sourceline or 0 for row in rows]
    return RawRows(
        pl.DataFrame(
            [pl.Series(_LINE, lines), *(_column(name, texts) for name, texts in lists.items())]
        ),
        np.array(lines, np.int64),
        np.arange(len(rows)),
        lambda row: etree.tostring(rows[row], encoding="unicode", with_tail=False)[:1000],
        [],
        place=lambda row: f" (line {lines[row]})",
    )


def _column(name: str, texts: list[list[str]]) -> pl.Series:
    """Returns a column of texts if each row has one at most, else of lists."""
    if all(len(each) <= 1 for each in texts):
        return pl.Series(name, [each[0] if each else None for each in texts], pl.String)
    return pl.Series(name, texts, pl.List(pl.String))


def _parse(text: bytes, name: str) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False,
        attribute_defaults=False, huge_tree=False, remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(text, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise SourceError(f"The file {name} is not XML: {error}.") from error
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and list(dtd.iterentities()):  # type: ignore[union-attr]
        raise SourceError(f"The file {name} declares entities: it is not read.")
    return root


def _evaluate(path: etree.XPath, node: etree._Element, name: str) -> object:
    try:
        return path(node)
    except etree.XPathError as error:
        raise SourceError(f"The XPath {path.path} fails on the file {name}: {error}.") from error


def _texts(value: object) -> list[str]:
    """Returns the texts of the result of an XPath."""
    if isinstance(value, list):
        return [_text(each) for each in value]
    return [_text(value)]


def _text(value: object) -> str:
    if isinstance(value, etree._Element):
        return "".join(map(str, value.itertext()))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)
