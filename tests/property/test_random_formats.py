"""Random cases whose streams and static graphs come in random formats say what the reference says.

``LEVADA_CASES`` is the number of examples, as in ``test_random_cases``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from levada.engine.engine import Engine
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.stream_builders import (
    write_documents,
    write_graphs,
    write_lines,
    write_packed,
    write_rdf,
)
from support.example_counts import EXAMPLES, PATIENCE
from support.generators import Case, cases
from support.stepped_runs import reports_of

pytestmark = pytest.mark.timeout(PATIENCE)
packings = st.sampled_from(("", ".gz", ".zst"))
ways = st.sampled_from(("lines", "blocks", "documents", "graphs"))
triple_formats = st.sampled_from(("ttl", "rdf", "nt", "trig", "jsonld", "jelly"))
quad_formats = st.sampled_from(("nq", "trig", "jsonld", "jelly"))


def name_stream(
    engine: Engine, name: str, elements: Any, lateness: int, root: Path, draw: Any
) -> None:
    """Writes a stream in one of the ways and names it."""
    way, packed = draw(ways, label="way"), draw(packings, label="packing")
    if way == "lines":
        engine.stream(name, write_lines(root / f"s.nt{packed}", elements), lateness=lateness)
    elif way == "blocks":
        blocks = ["".join(f"{t} {e.ts} .\n" for t in e.triples) for e in elements]
        path = write_packed(root / f"s.nt{packed}", "\n".join(blocks).encode())
        engine.stream(name, path, lateness=lateness, element="blankline")
    elif way == "documents":
        form = draw(triple_formats, label="format")
        folder = write_documents(root / "d", elements, f".{form}{packed}")
        engine.stream(
            name,
            folder,
            format=form,
            element="document",
            time=r"filename:_(-?[0-9]+)",
            lateness=lateness,
        )
    else:
        form = draw(quad_formats, label="format")
        path = write_graphs(root / f"s.{form}{packed}", elements)
        engine.stream(name, path, time="graph", element="graph", lateness=lateness)


def run(case: Case, data: st.DataObject) -> Any:
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        rows = data.draw(st.sampled_from((1, 3, 1000)), label="elements in an epoch")
        with Engine(
            spark=False, checkpoint=root / "ck", epoch_rows=rows, partitions=2, sink=sink, seed=7
        ) as engine:
            for i, (name, elements) in enumerate(case.streams.items()):
                (root / str(i)).mkdir()
                name_stream(engine, name, elements, case.lateness, root / str(i), data.draw)
            quads = [
                f"{t} <{g}>" if g else t for g, triples in case.static.items() for t in triples
            ]
            if quads:
                form, packed = (
                    data.draw(quad_formats, label="static"),
                    data.draw(packings, label="packing"),
                )
                engine.static(write_rdf(root / f"static.{form}{packed}", quads))
            for query in case.queries:
                engine.register(query.text, name=query.name, dialect=query.dialect, **query.options)
            engine.start(once=True)
            engine.await_end()
    return reports_of(case, sink)


@pytest.mark.long
@settings(
    max_examples=EXAMPLES or 10,
    deadline=None,
    phases=[Phase.generate] if EXAMPLES else tuple(Phase),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(cases(most=3), st.data())
def test_no_format_shows_in_a_result(case: Case, data: st.DataObject) -> None:
    assert same_queries(case.expected(), run(case, data)) is None
