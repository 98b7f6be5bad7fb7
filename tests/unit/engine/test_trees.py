"""Trees of texts as bytes: what is read is what was written, and never anything else. All published
texts are written and read in ``conformance/test_published_trees.py``.
"""

from __future__ import annotations

import pytest

from levada.engine.syntax_tree_transfer import decode_tree, encode_tree
from levada.language import parse


def test_bytes_that_are_cut_or_altered_are_no_tree() -> None:
    data = encode_tree(parse("SELECT ?s { ?s ?p 1, 2 FILTER(?s IN (1, <a:b>)) }"))
    for cut in range(len(data)):
        with pytest.raises(ValueError, match="it holds no tree"):
            decode_tree(data[:cut])
    for at in range(0, len(data), 7):
        altered = bytearray(data)
        altered[at] ^= 0x55
        with pytest.raises(ValueError, match="it holds"):
            decode_tree(bytes(altered))
