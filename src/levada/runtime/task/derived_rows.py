"""What a query has made, as the triples of a stream: the side of tasks.

    segments --the query's rows--> solutions --its template--> N-Triples with times --the byte
    kernel--> columns

An epoch's results of a query are read by as many tasks as there are segments with them, or by one
where they are few (``runtime.driver.derived_streams``). What one task guaranteed holds for several:

- A report is one element, and told once: a task tells the reports that its triples are of, and the
  driver counts each of them once (``runtime.driver.stream_progress``).
- A triple is once in a report, for whoever asks: rows of several tasks meet behind an exchange, and
  equal triples of one time are one occurrence there (``operators.windowed.deduplicate``), also
  where they are counted (``operators.windowing.element_times``). In what a stream is said to have
  had (``levada status``) a triple that two segments have counts twice.
- Blank nodes keep their names: a node of the input that comes through is still itself, and one of
  the template is another in every solution, the one that is published. Those of a report that look
  alike are numbered through all segments: such a task reads the solutions of the segments before
  its own, too.
- There is no order among the elements of an epoch, and no late one: how far the stream is complete
  follows from its maker, and not from what was read.

Cost: per triple what writing and reading a line costs (about 1 us), per segment a look at the rows
of queries of the shape; where the template has blank nodes, a text for each solution before.
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
    """What a stream is that a query makes: elements are reports, the time behind each triple."""
    return _config(reference.stream)


def made_triples(reference: DerivedSplit, context: EpochContext) -> tuple[Triples, FileSplit]:
    """The triples of the query's reports, and the reference as one to their text."""
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
    """The reports that the elements of a part are, for the driver; "" where it is the only one."""
    several = isinstance(reference, DerivedSplit) and reference.parts > 1
    return text_of(elements.times) if several else ""
