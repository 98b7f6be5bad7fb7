"""Key groups of terms, for programs that partition files as the engine partitions its work
(docs/placement.md#partition-files-so-that-placement-can-help).

A group is the top of the 64-bit XXH3 of a term's canonical text, with seed 0: a function of the
term alone, the same in every run and on every machine, and independent of the checkpoint's secret.
An identity has it in its second half (``kernels/text/xxh3``), and an exchange by one term uses it
(``kernels/keyed/key_partitioner``). Finer groups nest in coarser ones: group g of G contains, of k
times as many, the k groups from k g on.
"""

from __future__ import annotations

import re
import struct

import pyoxigraph as ox
import xxhash

from levada.core.rdf_terms import Kind
from levada.errors import UsageError

FINEST = 1 << 16

# that is canonical as it stands
_IRI = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*>")


def group_of(term: str | float | bool, groups: int = FINEST) -> int:
    """Returns the group (0 to ``groups`` - 1) of a term: equal terms have equal groups, always and
    everywhere.

    ``term`` is an RDF term as N-Triples writes it; a number or boolean is a value of a tuple stream
    (its texts are literals: ``'"a"'``). A checkpoint has 65,536 groups, which is the maximum. With
    as many ``groups`` as there are files, the result is the number of the file that should contain
    all rows of the term.

    Raises UsageError for anything else (a blank node belongs to its document alone), and for
    another number of groups.

    >>> group_of("<http://e/room1>", 12), group_of("<http://e/room1>")
    (2, 12819)
    """
    if isinstance(groups, bool) or not isinstance(groups, int) or not 1 <= groups <= FINEST:
        raise UsageError(f"There cannot be {groups!r} groups.", hint=f"Say 1 to {FINEST}.")
    return group_of_text(_bytes(term)) * groups // FINEST


def group_of_text(text: bytes) -> int:
    """The finest group of a canonical text: the top 16 bits of its hash."""
    return xxhash.xxh3_64_intdigest(text) >> 48


def _bytes(term: object) -> bytes:
    """Returns the bytes that are hashed to the identity of a term."""
    match term:
        case bool():
            return _nine(Kind.BOOLEAN, int(term).to_bytes(8, "little"))
        case int() if -(1 << 63) <= term < 1 << 63:
            return _nine(Kind.INTEGER, term.to_bytes(8, "little", signed=True))
        case float():
            return _nine(Kind.DOUBLE, struct.pack("<d", term + 0.0))
        case str():
            return (term if _IRI.fullmatch(term) else _canonical(term)).encode()
        case _:
            raise UsageError(f"{term!r} is no term that has a group.", hint=_HINT)


_HINT = "Give an IRI or a literal as N-Triples writes it, or a number or boolean of a tuple stream."


def _nine(tag: Kind, value: bytes) -> bytes:
    return bytes([tag]) + value


def _canonical(text: str) -> str:
    """A term in the one spelling that all have."""
    try:  # the graph behind it shows that nothing but the term is there
        quads = list(ox.parse(f"<x:s> <x:p> {text} <x:g> .", format=ox.RdfFormat.N_QUADS))
    except SyntaxError as error:
        raise UsageError(f"{text!r} is no RDF term.", hint=_HINT) from error
    alone = len(quads) == 1 and quads[0].graph_name == ox.NamedNode("x:g")
    term = quads[0].object if alone else None
    if not isinstance(term, ox.NamedNode | ox.Literal):
        raise UsageError(f"{text!r} is no term that has a group.", hint=_HINT)
    return str(term)
