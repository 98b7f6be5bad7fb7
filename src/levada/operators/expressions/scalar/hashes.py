"""Hash functions (SPARQL 1.1, 17.4.6): lower-case hexadecimal digits over the UTF-8 bytes of a
simple literal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from levada.core.rdf_terms import Literal, Term
from levada.operators.expressions.scalar.strings import simple_text


def digest(algorithm: str) -> Callable[[Term], Literal]:
    """The SPARQL function of a hashlib algorithm.

    >>> digest("md5")(Literal("abc")).lexical
    '900150983cd24fb0d6963f7d28e17f72'
    """

    def function(a: Term) -> Literal:
        return Literal(
            hashlib.new(algorithm, simple_text(a).encode(), usedforsecurity=False).hexdigest()
        )

    return function
