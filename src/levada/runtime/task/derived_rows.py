"""Reads the results of a query as the triples of a derived stream: the part of tasks.

    segments --the query's rows--> solutions --its template--> N-Triples with times --the byte
    kernel--> columns

As many tasks read an epoch's results of a query as there are segments with them, or one if they are
few (``runtime.driver.derived_streams``). The guarantees of one task hold for several:

- A report is one element and counts once: a task lists the reports of its triples, and the driver
  counts each of them once (``runtime.driver.stream_progress``).
- A triple occurs once in a report, for all consumers: rows of several tasks meet behind an
  exchange, and equal triples of one time are one occurrence there
  (``operators.windowed.deduplicate``), also where they are counted
  (``operators.windowing.element_times``). In the totals of a stream (``levada status``) a triple of
  two segments counts twice.
- Blank nodes keep their names: a node of the input that passes through remains itself, and a node
  of the template differs in every solution, like the published one. Equal-looking nodes of a report
  are numbered through all segments, so such a task also reads the solutions of the segments before
  its own.
- The elements of an epoch have no order, and none is late. The completeness of the stream follows
  from its producer, not from the elements.

Cost: for each triple that of writing and reading a line (about 1 us); for each segment a look at
the rows of queries of the shape; if the template has blank nodes, a text for each earlier solution.
"""

from __future__ import annotations

from functools import lru_cache, partial

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext, load_plan, text_of
from levada.connectors.config.input_formats import DERIVED
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.sources.splits import AnyReference, DerivedSplit, FileSplit
from levada.operators.results.result_segments import timed_statements


@lru_cache(maxsize=256)
def _config(stream: str) -> StreamConfig:
    return StreamConfig(stream, "", DERIVED, element="report")


def made_config(reference: DerivedSplit) -> StreamConfig:
    """Returns the configuration of a derived stream: elements are reports, the time follows each
    triple.
    """
    return _config(reference.stream)


def made_triples(reference: DerivedSplit, context: EpochContext) -> tuple[Triples, FileSplit]:
    """Returns the triples of the query's reports, and the reference as one to their text."""
    plan = load_plan(reference.path)
    text = timed_statements(
        plan,
        plan.queries[reference.name],
        reference.segments,
        partial(state_files.map_, context.root),
        reference.before,
    )
    triples = parse(text, quads=False, timed=True, seed=context.seed, document=reference.document)
    assert not triples.bad, f"a query makes well-formed triples: {triples.bad[:1]}"
    return triples, reference.text(len(text), DERIVED)


def report_times(reference: AnyReference, elements: Elements) -> str:
    """Returns the reports of the elements of a part, for the driver; "" if it is the only part."""
    several = isinstance(reference, DerivedSplit) and reference.parts > 1
    return text_of(elements.times) if several else ""
