"""Streams whose elements are closed: stars are joined where they are read, and the results are
those of the reference.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.core.event_time import Window, WindowKind
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.kernels.keyed.star_join import meet, meet_by_search
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.reference_model import Element, ReferenceQuery, Row
from levada.testing.stream_builders import time_term, write_graph
from support.example_counts import EXAMPLES
from support.generators import Case, CaseQuery, cases
from support.stepped_runs import reports_of

rdf = cases(most=4)
FEW = settings(
    max_examples=EXAMPLES or 10,
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


def triples_of(elements: Iterable[Element | Row]) -> Iterator[Element]:
    """The elements of a stream of triples: none is a row."""
    for element in elements:
        assert isinstance(element, Element)
        yield element


def closed(elements: Iterable[Element], repeat: bool) -> tuple[Element, ...]:
    """The elements by subject, each with subjects of its own; ``repeat``: with the first triple
    once more.
    """
    seen: set[str] = set()
    found = []
    for i, element in enumerate(elements):
        subjects: dict[str, list[str]] = {}
        for triple in element.triples:
            subject, rest = triple.split(" ", 1)
            subjects.setdefault(subject, []).append(rest)
        for subject, rests in subjects.items():
            own = subject if subject not in seen else f"{subject[:-1]}_{i}>"
            seen.add(own)
            found.append(
                Element(element.ts, tuple(f"{own} {rest}" for rest in [*rests, *rests[:repeat]]))
            )
    return tuple(found)


def run_closed(
    case: Case, how: Literal["subject", "graph"], epoch_rows: int, partitions: int,
    promise: Literal["element", "trusted"] = "element",
) -> dict[str, list]:  # fmt: skip
    """The engine's reports; ``how`` the elements are told apart: "subject" or "graph"."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with Engine(
            spark=False,
            checkpoint=root / "checkpoint",
            epoch_rows=epoch_rows,
            partitions=partitions,
            sink=sink,
            seed=7,
        ) as engine:
            for n, (name, elements) in enumerate(case.streams.items()):
                path = root / f"{n}.nq"
                with path.open("w") as file:
                    for i, e in enumerate(elements):
                        graph = f"<http://e/g{i}> " if how == "graph" else ""
                        file.writelines(f"{t} {graph}{time_term(e.ts)} .\n" for t in e.triples)
                engine.stream(name, path, lateness=case.lateness, element=how, closed=promise)
            for n, (graph, triples) in enumerate(case.static.items()):  # type: ignore[assignment]
                engine.static(write_graph(root / f"static{n}.nt", triples), graph)
            for query in case.queries:
                engine.register(query.text, name=query.name, dialect=query.dialect, **query.options)
            engine.start(once=True)
            engine.await_end()
    return reports_of(case, sink)


@pytest.mark.long
@FEW
@given(
    rdf,
    st.sampled_from((1, 3, 1000)),
    st.sampled_from((1, 2, 3)),
    st.sampled_from(("subject", "graph")),
    st.booleans(),
    st.sampled_from(("element", "trusted")),
)
def test_closed_streams_equal_the_reference(
    case: Case, rows: int, parts: int, how: Literal["subject", "graph"], repeat: bool,
    promise: Literal["element", "trusted"],
) -> None:  # fmt: skip
    streams = {n: closed(triples_of(e), repeat) for n, e in case.streams.items()}
    case = replace(case, streams=streams)
    assert same_queries(case.expected(), run_closed(case, how, rows, parts, promise)) is None


def test_a_trusted_stream_sends_no_subjects(tmp_path: Path) -> None:
    """Not even when the promise is broken: nobody looks."""
    lines = [f'<http://e/k{i % 7}> <http://e/p> "{i}" {1000 * i} .\n' for i in range(40)]
    (tmp_path / "s.nt").write_text("".join(lines))
    text = (
        "SELECT ?k ?v FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT10S STEP PT10S] "
        "WHERE { WINDOW <w> { ?k <http://e/p> ?v } }"
    )
    found = {}
    for promise in ("element", "trusted"):
        with Engine(spark=False, checkpoint=tmp_path / promise, partitions=2, seed=7) as engine:
            engine.stream(
                "http://e/s",
                tmp_path / "s.nt",
                element="subject",
                closed=promise,
            )
            query = engine.register(text, name="q")
            engine.start(once=True)
            rows = sum(len(report.rows) for report in query.results())
            found[promise] = rows, list(engine.status().suspended_queries)
    assert found == {"element": (0, ["q"]), "trusted": (40, [])}


PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40)


@settings(deadline=None)
@given(PLACES.map(sorted), PLACES, st.booleans())
def test_legs_meet_as_their_twin_says(
    places: list[tuple[int, int]], pairs: list[tuple[int, int]], in_order: bool
) -> None:
    pairs = sorted(pairs) if in_order else pairs
    subject = np.array([s for _, s in places], np.int32)
    starts = np.searchsorted([p for p, _ in places], np.arange(5)).astype(np.int64)
    pattern, wanted = (
        np.array([p for p, _ in pairs], np.int64),
        np.array([s for _, s in pairs], np.int32),
    )
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(pairs):
        one, other = np.empty(41, np.int64), np.empty(41, np.int64)
        start, n = meet(pattern, wanted, subject, starts, start, one, other)
        found += zip(one[:n].tolist(), other[:n].tolist(), strict=True)
    expected = meet_by_search(pattern, wanted, subject, starts)
    assert found == list(zip(*(e.tolist() for e in expected), strict=True))


S = "http://e/s"
QUERY = (
    f"SELECT ?s ?v FROM NAMED WINDOW <w> ON <{S}> [RANGE PT2S STEP PT1S] {{ "
    f"WINDOW <w> {{ ?s <a:p> ?v ; <a:q> ?w }} }}"
)


def run(tmp_path: Path, text: str, rows: int) -> None:
    path = tmp_path / "s.nt"
    path.write_text(text)
    with Engine(spark=False, epoch_rows=rows, partitions=2) as engine:
        engine.stream(S, path, element="subject", closed="element")
        engine.register(QUERY)
        engine.start(once=True)
        engine.await_end()


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_a_subject_that_comes_again_within_a_window_suspends_the_queries(
    tmp_path: Path, rows: int
) -> None:
    text = "<a:s> <a:p> 1 0 .\n<a:t> <a:p> 1 10 .\n<a:s> <a:q> 2 20 .\n".replace(
        " 1 ", ' "1" '
    ).replace(" 2 ", ' "2" ')
    with pytest.warns(
        UserWarning,
        match=r"suspended.*the subject <a:s> is at byte 0 of .*s.nt and again at byte 41",
    ):
        run(tmp_path, text, rows)


def test_a_broken_promise_is_found_within_one_epoch(tmp_path: Path) -> None:
    (tmp_path / "s.nq").write_text("<a:s> <a:p> <a:x> <a:g> 0 .\n<a:s> <a:q> <a:y> <a:h> 20 .\n")
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, tmp_path / "s.nq", element="graph", closed="element")
        engine.register(QUERY)
        with pytest.warns(
            UserWarning, match=r"the subject <a:s> is at byte 0 of .*s.nq and again at byte 28 of"
        ):
            engine.start(once=True)
            engine.await_end()


def test_a_broken_promise_leaves_queries_of_other_streams(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text(
        '<a:s> <a:p> "1" 0 .\n<a:t> <a:p> "1" 10 .\n<a:s> <a:q> "2" 20 .\n'
    )
    (tmp_path / "t.nt").write_text(
        '<a:s> <a:p> "1" 0 .\n<a:s> <a:q> "2" 0 .\n<a:t> <a:p> "1" 5000 .\n'
    )
    with Engine(spark=False, epoch_rows=1, partitions=2, checkpoint=tmp_path / "ck") as engine:
        for name in "st":
            engine.stream(
                f"http://e/{name}", tmp_path / f"{name}.nt", element="subject", closed="element"
            )
        engine.register(QUERY, name="broken")
        sound = engine.register(QUERY.replace(S, "http://e/t"), name="sound")
        with pytest.warns(UserWarning, match="The query broken is suspended"):
            engine.start(once=True)
            engine.await_end()
        assert len(list(sound.results())) == 2
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["broken"]


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_a_subject_that_comes_again_later_is_another_element(tmp_path: Path, rows: int) -> None:
    run(tmp_path, '<a:s> <a:p> "1" 0 .\n<a:t> <a:p> "1" 10 .\n<a:s> <a:q> "2" 3000 .\n', rows)


AGAIN = (
    Element(1000, ("<a:s> <a:p> <a:x>", "<a:s> <a:q> <a:y>")),
    Element(1500, ("<a:t> <a:p> <a:x>",)),
    Element(9000, ("<a:s> <a:p> <a:x>", "<a:s> <a:p> <a:z>", "<a:s> <a:q> <a:w>")),
    Element(9500, ("<a:u> <a:p> <a:x>",)),
    Element(30000, ("<a:s> <a:p> <a:v>",)),
)
"""A subject that comes again when it has left every window of two seconds, also with a triple that
it has had before.
"""


@pytest.mark.parametrize("how", ["subject", "graph"])
@pytest.mark.parametrize("rows", [1, 1000])
def test_elements_of_a_subject_that_no_window_holds_together_are_never_one_star(
    rows: int, how: Literal["subject", "graph"]
) -> None:
    window = Window(WindowKind.CLOSE_OPEN, range=2000, step=1000)
    body = "WINDOW <w> { ?s <a:p> ?v ; <a:q> ?w }"
    sparql = f"SELECT ?s ?v ?w {{ {body.replace('WINDOW <w>', 'GRAPH <w:>')} }}"
    asked = ReferenceQuery(sparql, {"w:": (S, window)})
    text = QUERY.replace("SELECT ?s ?v", "SELECT ?s ?v ?w")
    case = Case({S: AGAIN}, (CaseQuery("q", text, "rspql", {}, asked),))
    assert same_queries(case.expected(), run_closed(case, how, rows, 2)) is None


def test_windows_of_other_streams_do_not_hold_its_elements_together(tmp_path: Path) -> None:
    """A promise is of the windows that read the stream: beside one that never empties, it is as it
    was.
    """
    text = '<a:s> <a:p> "1" 0 .\n<a:t> <a:p> "1" 10 .\n<a:s> <a:q> "2" 3000 .\n'
    (tmp_path / "t.nt").write_text("<a:b> <a:r> <a:c> 5 .\n")
    beside = QUERY.replace(
        " {", " FROM NAMED WINDOW <z> ON <http://e/t> [ALL] { WINDOW <z> { ?z <a:r> ?n }", 1
    )
    (tmp_path / "s.nt").write_text(text)
    with Engine(spark=False, epoch_rows=1, partitions=2) as engine:
        engine.stream(S, tmp_path / "s.nt", element="subject", closed="element")
        engine.stream("http://e/t", tmp_path / "t.nt")
        engine.register(beside)
        engine.start(once=True)
        assert engine.await_end()
