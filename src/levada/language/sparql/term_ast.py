"""The positions of a triple pattern: variables, terms, blank nodes, property paths (SPARQL 1.1,
sections 4 and 9). ``ast`` exports these names.
"""

from __future__ import annotations

from dataclasses import field

from levada.core.frozen import frozen
from levada.core.rdf_terms import Iri, Literal
from levada.errors import Span


@frozen
class Var:
    """A variable by its name, without ``?``."""

    name: str
    span: Span = field(compare=False, repr=False)


@frozen
class Constant:
    """An IRI or a literal."""

    term: Iri | Literal
    span: Span = field(compare=False, repr=False)


@frozen
class BlankNode:
    """A blank node of the text. ``label`` of ``[]`` and of lists starts with a dot, which no
    written label has.
    """

    label: str
    span: Span = field(compare=False, repr=False)


Name = Var | Constant
Node = Var | Constant | BlankNode


@frozen
class PathSequence:
    """``a/b``."""

    steps: tuple[Path, ...]
    span: Span = field(compare=False, repr=False)


@frozen
class PathAlternative:
    """``a|b``."""

    choices: tuple[Path, ...]
    span: Span = field(compare=False, repr=False)


@frozen
class PathInverse:
    """``^a``."""

    path: Path
    span: Span = field(compare=False, repr=False)


@frozen
class PathRepeat:
    """``a*``, ``a+``, ``a?``."""

    path: Path
    times: str
    span: Span = field(compare=False, repr=False)


@frozen
class PathNegated:
    """``!(a|^b)``: one step by any other predicate."""

    forbidden: tuple[Path, ...]
    span: Span = field(compare=False, repr=False)


Path = Constant | PathSequence | PathAlternative | PathInverse | PathRepeat | PathNegated
Verb = Var | Path
