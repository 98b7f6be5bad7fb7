"""Divides a document into elements by subject: each subject with all that its blank nodes reach
(docs/semantics.md#elements-by-subject).

A subject is an IRI, or a blank node that no other triple of the document refers to. Consecutive
triples of one subject are one element (triples of blank nodes that others reach do not separate
them). It includes the triples of each blank node that they reach, over any number of steps: the
concise bounded description. So a blank node that two subjects reach is in the elements of both. If
blank nodes refer to each other in a cycle that no subject reaches, the first of them is a subject.

Cost: a sort of the rows about blank nodes, and the rows of the result.
"""

from __future__ import annotations

import numpy as np

from levada.connectors.ingest.parse.ntriples import Triples
from levada.core.array_types import Ints, Longs
from levada.core.rdf_terms import Kind
from levada.kernels.keyed.hash_groups import group
from levada.kernels.text.blank_node_reach import reachable_rows, subjects_of_cycles
from levada.kernels.text.element_runs import number_alike

TOO_MANY = "its subjects share so many blank nodes that their elements would have {:,} triples"
_SHARED = 1_000_000


def describe_subjects(triples: Triples) -> tuple[Triples, Ints]:
    """Returns the triples by element, with a copy for each of their elements, and the number of
    each row's element. A document whose elements have more than ten times its triples, and more
    than a million, is one bad place, without elements.
    """
    subject, object_ = _blank_nodes(triples)
    if not len(triples.line) or subject.max() < 0:
        return triples, number_alike(triples.s.x, triples.s.y)[0]
    rows = np.argsort(subject, kind="stable")
    nodes = int(max(subject.max(), object_.max())) + 1
    starts = np.searchsorted(subject[rows], np.arange(nodes + 1))
    root = np.ones(nodes, np.bool_)
    root[object_[(object_ >= 0) & (object_ != subject)]] = False
    about = subjects_of_cycles(subject, object_, starts, rows, root)
    element_rows = np.flatnonzero((subject < 0) | about[subject])
    number, first = number_alike(triples.s.x[element_rows], triples.s.y[element_rows])
    most = max(10 * triples.n, _SHARED)
    rows_reached, edges = reachable_rows(
        first, element_rows, subject[element_rows[first[:-1]]], object_, starts, rows, most
    )
    if len(edges) < len(first):
        nothing = triples.take(rows_reached[:0])
        nothing.bad.append((0, f"Malformed document: {TOO_MANY.format(most)} or more", ""))
        return nothing, number[:0]
    each = np.repeat(np.arange(len(edges) - 1, dtype=np.int32), np.diff(edges))
    return triples.take(rows_reached), each


def _blank_nodes(triples: Triples) -> tuple[Longs, Longs]:
    """Returns the number of the blank node that is each row's subject, and its object; -1: it is
    none.
    """
    s, o = triples.s, triples.o
    numbers = [np.full(triples.n, -1, np.int64) for _ in range(2)]
    at = [np.flatnonzero(column.kind == Kind.BLANK) for column in (s, o)]
    x, y = (np.concatenate([s_[at[0]], o_[at[1]]]) for s_, o_ in ((s.x, o.x), (s.y, o.y)))
    number = group(x, y)[0].astype(np.int64)
    numbers[0][at[0]], numbers[1][at[1]] = number[: len(at[0])], number[len(at[0]) :]
    return numbers[0], numbers[1]
