"""Each triple's element and event time, for every place that a time can come from."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements, elements_of
from levada.connectors.ingest.parse.ntriples import parse
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.read_split import read_bytes
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MAX, MIN
from levada.kernels.text.line_boundaries import GRAPH, SUBJECT, number_elements

SEED = 7
START = 1000
XSD = "http://www.w3.org/2001/XMLSchema#"


def assign(
    config: StreamConfig,
    reference: FileSplit,
    data: np.ndarray,
    late_below: Any = MIN,
    future_above: Any = MAX,
) -> Elements:
    triples = parse(
        data,
        quads=config.quads,
        timed=config.timed,
        seed=SEED,
        document=1,
        unit_power=config.unit_power,
    )
    return elements_of(
        triples, config, reference, late_below=late_below, future_above=future_above, seed=SEED
    )


def run(
    text: str,
    late_below: Any = MIN,
    future_above: Any = MAX,
    limit: Any = None,
    name: str = "obs_12.nt",
    **options: Any,
) -> Elements:
    config = StreamConfig.from_options(
        "s", "a.nq" if "graph" in options.values() else "a.nt", **options
    )
    data = np.frombuffer(text.encode(), np.uint8)
    where = FileSplit("s", "s", name, "/x", config.format, START, START + len(data), 0, 1, 0, limit)
    return assign(config, where, data, late_below, future_above)


def dead(elements: Elements) -> list[tuple[int, str]]:
    return [(d.offset - START, d.reason) for d in elements.dead]


def test_a_time_in_each_line() -> None:
    result = run(
        '<http://s> <http://p> "a" 20 .\n<http://s> <http://p> "b" 10 .\n# c\n'
        '<http://s> <http://p> "c" 20 .\n'
    )
    assert result.ts.tolist() == [20, 10, 20]
    assert result.element.tolist() == [0, 1, 2]
    assert result.keep.all() and (result.elements, result.triples) == (3, 3)
    assert (result.max_ts, result.times.tolist(), result.dead, len(result.late)) == (
        20,
        [10, 20],
        [],
        0,
    )


TERMS = ("<http://s>", "<http://t>", "<http://\\u0073>", "_:b", "_:c")
QUADS = st.lists(
    st.tuples(st.sampled_from(TERMS), st.sampled_from((*TERMS, "")), st.sampled_from(("", "junk"))),
    max_size=12,
)


@settings(deadline=None)
@given(QUADS, st.sampled_from(("subject", "graph")))
def test_elements_are_told_apart_as_they_are_written(quads: Any, by: Any) -> None:
    """By identities where all lines are plain, by bytes where some are not: no difference shows."""
    text = "".join(
        f"{s} <http://p> <http://o> {g}{' ' * bool(g)}7 .{junk and chr(10) + junk}\n"
        for s, g, junk in quads
    )
    data = np.frombuffer(text.encode(), np.uint8)
    triples = parse(data, quads=True, timed=True, seed=SEED, document=1, unit_power=0)
    raw = number_elements(
        data, np.ascontiguousarray(triples.line, np.int64), SUBJECT if by == "subject" else GRAPH
    )
    expected = np.unique(raw, return_inverse=True)[1]
    assert run(text, element=by, format="nq").element.tolist() == expected.tolist()


def test_a_bad_line_is_dead_alone() -> None:
    text = '<http://s> <http://p> "a" 1 .\nnot a line\n<http://s> <http://p> "b" 2 .\n'
    result = run(text)
    assert result.ts.tolist() == [1, 2]
    (letter,) = result.dead
    assert (
        letter.offset == START + text.index("not") and letter.text == "not a line" and letter.reason
    )


def test_late_future_and_cut_lines() -> None:
    text = "".join(
        f'<http://s> <http://p> "{i}" {ts} .\r\n'
        for i, ts in enumerate([5, 50, 10, 200, 20, 30, 40])
    )
    start: dict[str, Any] = {"from": 10}
    result = run(text, late_below=11, future_above=100, limit=5, **start)
    assert result.keep.tolist() == [False, True, False, False, True, True, False]
    assert (result.late.ts.tolist(), result.late.text) == ([10], ['<http://s> <http://p> "2" 10 .'])
    assert result.late.offset.tolist() == [START + text.index('<http://s> <http://p> "2"')]
    assert [d.text for d in result.dead] == ['<http://s> <http://p> "3" 200 .']
    assert "future" in result.dead[0].reason
    assert (result.cut, result.passed, result.max_ts) == (2, 5, 50)
    assert result.times.tolist() == [20, 30, 50]


def test_the_greatest_time_counts_late_elements_but_neither_dead_nor_cut_ones() -> None:
    result = run(
        '<http://s> <http://p> "a" 9 .\n<http://s> <http://p> "b" 99 .\n', late_below=50, to=90
    )
    assert (result.max_ts, result.times.tolist(), result.elements) == (9, [], 0)
    assert run("").max_ts == MIN


SUBJECTS = """<http://s1> <http://p> "a" {0} .
<http://s1> <http://q> "b" {1} .
<http://s2> <http://p> "c" {2} .
"""


def test_lines_of_one_subject_have_one_time() -> None:
    result = run(SUBJECTS.format(5, 5, 6), element="subject")
    assert (result.element.tolist(), result.ts.tolist(), result.elements) == (
        [0, 0, 1],
        [5, 5, 6],
        2,
    )
    split = run(SUBJECTS.format(5, 7, 6), element="subject")
    assert split.keep.tolist() == [False, False, True]
    assert dead(split) == [(0, "its triples have different times")]
    assert split.dead[0].text == '<http://s1> <http://p> "a" 5 .\n<http://s1> <http://q> "b" 7 .'
    assert split.max_ts == 6


def test_a_bad_line_in_an_element_leaves_the_rest() -> None:
    text = '<http://s1> <http://p> "a" 5 .\n<http://s1> oops .\n<http://s1> <http://q> "b" 5 .\n'
    result = run(text, element="subject")
    assert (result.element.tolist(), result.elements, result.triples) == ([0, 0], 1, 2)
    assert [offset for offset, _ in dead(result)] == [text.index("<http://s1> oops")]


def test_the_same_subject_later_is_another_element() -> None:
    text = "".join(
        f"<http://s{s}> <http://p> {ts} {ts} .\n".replace(f"{ts} {ts}", f'"x" {ts}')
        for s, ts in [(1, 1), (2, 2), (1, 3)]
    )
    assert run(text, element="subject").ts.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("graph", "ts"),
    [
        ("<http://g/2013/1092880800000>", 1_092_880_800_000),
        ("<http://g/1970-01-01T00:00:01Z>", 1000),
        ("<http://g/none>", MIN),
        ("", MIN),
        ("_:g12", MIN),
    ],
)
def test_a_time_in_the_graph(graph: str, ts: Any) -> None:
    result = run(
        f'<http://s> <http://p> "a" {graph} .\n<http://s> <http://p> "b" <http://g/7> .\n',
        time="graph",
    )
    assert result.ts.tolist() == [ts, 7]
    assert dead(result) == ([] if ts > MIN else [(0, "no time")])


def test_consecutive_lines_of_a_graph_are_an_element() -> None:
    text = "".join(
        f'<http://s{i}> <http://p> "a" <http://g/{g}> .\n' for i, g in enumerate([3, 3, 4, 3])
    )
    result = run(text, time="graph", element="graph", unit="s")
    assert (result.element.tolist(), result.ts.tolist()) == ([0, 0, 1, 2], [3000, 3000, 4000, 3000])


@pytest.mark.parametrize(
    ("value", "ts"),
    [
        (f'"12"^^<{XSD}integer>', 12),
        (f'"12"^^<{XSD}long>', 12),
        ('"12"', 12),
        (f'"1970-01-01T00:00:01Z"^^<{XSD}dateTime>', 1000),
        (f'"1970-01-01T00:00:01"^^<{XSD}dateTime>', 1000),
        (f'"1970-01-01T00:00:01.0009Z"^^<{XSD}dateTime>', 1000),
        ('"1970-01-01T00:00:01"', 1000),
        (f'"12.9"^^<{XSD}decimal>', 12),
        (f'"1970-01-02"^^<{XSD}date>', 86_400_000),
        ('"12"@en', MIN),
        ('"soon"', MIN),
        (f'"99999999999999999999"^^<{XSD}integer>', MIN),
        ("<http://e/12>", MIN),
    ],
)
def test_a_time_by_a_predicate(value: str, ts: Any) -> None:
    text = (
        f'<http://s> <http://p> "a" .\n<http://s> <http://t> {value} .\n'
        '<http://s2> <http://t> "1" .\n'
    )
    result = run(text, time="predicate:http://t", element="subject")
    assert result.ts.tolist() == [ts, ts, 1]
    assert result.keep.tolist() == [ts > MIN, ts > MIN, True]
    assert dead(result) == ([] if ts > MIN else [(0, "its time is not a number, date or dateTime")])


def test_seconds_by_a_predicate() -> None:
    text = f'<http://s> <http://t> "12"^^<{XSD}integer> .\n'
    assert run(text, time="predicate:http://t", element="subject", unit="s").ts.tolist() == [12_000]


def test_a_predicate_that_is_missing_or_says_two_things() -> None:
    rows = [
        'a> <http://p> "1"',
        'b> <http://t> "1"',
        'b> <http://t> "2"',
        'c> <http://t> "3"',
        'c> <http://t> "3"',
    ]
    text = "".join(f"<http://{row} .\n" for row in rows)
    result = run(text, time="predicate:http://t", element="subject")
    assert [reason for _, reason in dead(result)] == ["no time", "its triples have different times"]
    assert result.ts[3:].tolist() == [3, 3] and result.elements == 1


def test_a_document_is_one_element() -> None:
    text = '<http://a> <http://p> "1" .\n<http://b> <http://t> "5" .\n'
    result = run(text, time="predicate:http://t", element="document")
    assert (result.element.tolist(), result.ts.tolist(), result.elements) == ([0, 0], [5, 5], 1)
    assert run("# nothing\n", time="predicate:http://t", element="document").elements == 0


def test_a_time_in_the_name_of_the_file() -> None:
    text = '<http://a> <http://p> "1" .\n<http://b> <http://p> "5" .\n'
    assert run(text, time=r"filename:_(\d+)", unit="s").ts.tolist() == [12_000, 12_000]
    nameless = run(text, time=r"filename:_(\d+)", name="x.nt")
    assert [reason for _, reason in dead(nameless)] == ["no time", "no time"]


def test_late_elements_are_late_whole() -> None:
    result = run(SUBJECTS.format(5, 5, 60), element="subject", late_below=50)
    assert (result.keep.tolist(), len(result.late)) == ([False, False, True], 1)
    assert result.late.text == ['<http://s1> <http://p> "a" 5 .\n<http://s1> <http://q> "b" 5 .']


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 3),
            st.sampled_from(["", "# c\n", "bad\n", "<http://s1> bad\n"]),
        ),
        max_size=14,
    ),
    st.integers(1, 5),
    st.sampled_from(["line", "subject", "graph"]),
)
def test_the_cut_into_references_does_not_show(
    tmp_path_factory: pytest.TempPathFactory, parts: Any, rows: Any, element: Any
) -> None:
    """Rows, times and dead letters of a file are the same however many elements a reference
    holds.
    """
    text = "".join(
        f'<http://s{s}> <http://p> "v" <http://g{s}> {ts} .\n{more}' for s, ts, more in parts
    )
    folder = tmp_path_factory.mktemp("cut")
    (folder / "a.nq").write_text(text)
    config = StreamConfig.from_options("s", folder / "a.nq", element=element)
    source = FileSource(config, folder / "x")
    source.discover(final=True)

    def all_of(most: Any) -> Any:
        position, kept, letters, late = {}, [], [], []
        while True:
            references, position = source.take(position, most)
            if not references:
                return kept, sorted(letters), late
            for r in references:
                result = assign(config, r, read_bytes(r), late_below=2)
                kept += result.ts[result.keep].tolist()
                letters += result.dead
                late += list(zip(result.late.offset.tolist(), result.late.text, strict=True))

    assert all_of(rows) == all_of(1000)
