"""The test for literals that are numbers by their lexical form.

``"x"^^xsd:integer`` and ``"300"^^xsd:byte`` are not numbers, though they have numeric datatypes.
Such a literal equals the same term, by its text and not by a value.
"""

from __future__ import annotations

import re

from levada.core.rdf_terms import MOST_CHARACTERS, XSD, Literal

_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_DOUBLE = rf"{_DECIMAL}([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_BITS = {"long": 64, "int": 32, "short": 16, "byte": 8}
_FORMS = {
    **dict.fromkeys(("integer", *_BITS), re.compile(r"[+-]?[0-9]+")),
    "decimal": re.compile(_DECIMAL),
    **dict.fromkeys(("double", "float"), re.compile(_DOUBLE)),
}


def is_number(of: Literal) -> bool:
    """Whether a literal is a number of a numeric datatype.

    >>> [is_number(Literal(text, XSD + "byte")) for text in ("-128", "+7", "128", "1e2", "")]
    [True, True, False, False, False]
    """
    datatype = of.datatype.removeprefix(XSD) if of.datatype.startswith(XSD) else ""
    form = _FORMS.get(datatype)
    if form is None or len(of.lexical) > MOST_CHARACTERS or not form.fullmatch(of.lexical):
        return False
    bits = _BITS.get(datatype)
    return bits is None or -(1 << bits - 1) <= int(of.lexical) < 1 << bits - 1
