"""Trees of query texts as bytes: a process that has parsed a text hands its tree on.

Reading makes values of these classes and no others, whatever the bytes say.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from types import ModuleType

import numpy as np

from levada.core import rdf_terms
from levada.errors import Span
from levada.language.cql import ast as cql
from levada.language.sparql import ast, term_ast, window_ast
from levada.plan.encoding.document import WRONG, decode, encode
from levada.plan.encoding.tag_registry import Registry

SMALL_TEXTS = 4096
"""Characters of texts that are parsed soon enough where they are needed."""


def _classes(module: ModuleType) -> dict[str, type]:
    """The classes of nodes that a module defines, by name."""
    return {
        f"{module.__name__}.{name}": value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and is_dataclass(value)
    }


TREES = Registry(
    {},
    {"span": Span, "iri": rdf_terms.Iri, "blank": rdf_terms.Blank, "literal": rdf_terms.Literal}
    | {"instant": window_ast.Instant}
    | _classes(cql) | _classes(ast) | _classes(term_ast) | _classes(window_ast),
)  # fmt: skip
Tree = ast.QueryUnit | cql.Script


def encode_tree(tree: Tree) -> bytes:
    """A tree as bytes.

    >>> from levada.language import parse
    >>> tree = parse("SELECT ?s { ?s ?p 1 }")
    >>> decode_tree(encode_tree(tree)) == tree
    True
    """
    return encode(tree, TREES)


def decode_tree(data: bytes) -> Tree:
    """The tree in bytes. Raises ``ValueError`` if they hold none."""
    try:
        tree = decode(np.frombuffer(data, np.uint8), object, TREES)
    except WRONG as error:
        raise ValueError("it holds no tree") from error
    if not isinstance(tree, Tree):
        raise ValueError("it holds something else")
    return tree
