"""The tree of each published query text is the same when it has been written as bytes and read."""

from __future__ import annotations

import pytest
from published import DATA, MISSING, available, texts

from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.engine.syntax_tree_transfer import decode_tree, encode_tree
from levada.errors import LevadaError

pytestmark = pytest.mark.skipif(not available(), reason=MISSING)


def test_trees_are_read_as_they_were_written() -> None:
    paths = [path for _, _, path in texts()]
    paths += sorted((DATA / "rdf-tests" / "sparql").glob("sparql1[01]/**/*.rq"))
    count = 0
    for path in paths:
        try:
            tree = prepare(QueryRequest(path.read_text(encoding="utf-8"), "q"), NameScope()).ast
        except (LevadaError, UnicodeDecodeError):
            continue
        count += 1
        read = decode_tree(encode_tree(tree))
        assert read == tree, path
        assert repr(read) == repr(tree), path
    assert count > 500
