"""What stands at a position of a triple pattern: variables, terms, blank nodes, property paths
(SPARQL 1.1, sections 4 and 9). ``ast`` shows these names as its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.errors import Span
from levada.model.term import Iri, Literal


@dataclass(frozen=True, slots=True)
class Var:
    """A variable by its name, without ``?``."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """An IRI or a literal."""

    term: Iri | Literal
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node of the text. ``label`` of ``[]`` and of lists starts with a dot, which no
    written label does.
    """

    label: str
    span: Span = field(compare=False, repr=False)


Name = Var | Constant
Node = Var | Constant | BlankNode


@dataclass(frozen=True, slots=True)
class PathSequence:
    """``a/b``."""

    steps: tuple[Path, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PathAlternative:
    """``a|b``."""

    choices: tuple[Path, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PathInverse:
    """``^a``."""

    path: Path
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PathRepeat:
    """``a*``, ``a+``, ``a?``."""

    path: Path
    times: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PathNegated:
    """``!(a|^b)``: one step by any other predicate."""

    forbidden: tuple[Path, ...]
    span: Span = field(compare=False, repr=False)


Path = Constant | PathSequence | PathAlternative | PathInverse | PathRepeat | PathNegated
Verb = Var | Path
