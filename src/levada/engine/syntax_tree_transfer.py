"""Syntax trees as bytes, so that a process that has parsed a text can pass the tree on.

Decoding creates values of these classes only, whatever the bytes contain.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from types import ModuleType

import numpy as np

from levada.core import rdf_terms
from levada.errors import Span
from levada.language.cql import ast as cql
from levada.language.sparql import ast, term_ast, window_ast
from levada.plan.encoding.plan_codec import WRONG, decode, encode
from levada.plan.encoding.tag_registry import Registry

SMALL_TEXTS = 4096
"""Characters of texts that parse so quickly that their trees are not passed on."""


def _classes(module: ModuleType) -> dict[str, type]:
    """Returns the node classes that a module defines, by name."""
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
    """Encodes a tree as bytes.

    >>> from levada.language import parse
    >>> tree = parse("SELECT ?s { ?s ?p 1 }")
    >>> decode_tree(encode_tree(tree)) == tree
    True
    """
    return encode(tree, TREES)


def decode_tree(data: bytes) -> Tree:
    """Decodes a tree. Raises ``ValueError`` if the bytes are not a tree."""
    try:
        tree = decode(np.frombuffer(data, np.uint8), object, TREES)
    except WRONG as error:
        raise ValueError("it holds no tree") from error
    if not isinstance(tree, Tree):
        raise ValueError("it holds something else")
    return tree
