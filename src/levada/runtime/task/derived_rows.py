"""What a query has made, as the triples of a stream: the side of tasks.

    segments --the query's rows--> solutions --its template--> N-Triples with times --the byte
    kernel--> columns

All of an epoch's results of a query are read by one task: triples are one a report, and a
template's blank nodes number the solutions of a report that look alike. Blank nodes keep their
names: a node of the input that comes through is still itself, and one of the template is another in
every solution.

Cost: per triple what writing and reading a line costs (about 1 us), per segment a look at the rows
of queries of the shape.
"""

from __future__ import annotations

from functools import lru_cache, partial

from levada.emission.segments import timed_statements
from levada.intake.parse.ntriples import Triples, parse
from levada.runtime.context import Context, load_plan
from levada.runtime.store import state_files
from levada.sources.reference import MadeReference, Reference
from levada.streams.formats import DERIVED
from levada.streams.stream_config import StreamConfig


@lru_cache(maxsize=256)
def _config(stream: str) -> StreamConfig:
    return StreamConfig(stream, "", DERIVED, element="report")


def made_config(reference: MadeReference) -> StreamConfig:
    """What a stream is that a query makes: elements are reports, the time behind each triple."""
    return _config(reference.stream)


def made_triples(reference: MadeReference, context: Context) -> tuple[Triples, Reference]:
    """The triples of the query's reports, and the reference as one to their text."""
    plan = load_plan(reference.path)
    text = timed_statements(
        plan,
        plan.queries[reference.name],
        reference.segments,
        partial(state_files.map_, context.root),
    )
    triples = parse(text, quads=False, timed=True, seed=context.seed, document=reference.document)
    assert not triples.bad, f"a query makes well-formed triples: {triples.bad[:1]}"
    return triples, reference.text(len(text), DERIVED)
