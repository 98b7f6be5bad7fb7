"""Groups of terms: the same everywhere, and those by which the engine sends rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import levada
from levada.checkpoint.checkpoint_folder import plan_of
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.state_files import map_
from levada.connectors.ingest.tables.tuple_rows import TupleColumn
from levada.core.checkpoint_files import facts_of
from levada.core.key_groups import FINEST, group_of
from levada.core.rdf_terms import XSD, Iri, Kind, Literal
from levada.errors import UsageError
from levada.kernels.keyed.key_partitioner import group_of as groups_of
from levada.kernels.terms.term_ids import identify_one
from levada.operators.matching.scan_rows import _number_identity
from levada.operators.results.result_segments import batches
from levada.plan.execution.key_group_table import deal_round_robin

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
LEXICAL = st.text(CHARACTERS, max_size=300)
TERMS = (
    st.text("abc/:.-~é0", max_size=300).map(lambda t: Iri(f"http://e/{t}"))
    | st.builds(Literal, LEXICAL)
    | st.builds(Literal, LEXICAL, st.sampled_from([XSD + "integer", "http://e/type"]))
)
SEEDS = st.integers(0, 2**63 - 1)
PARTS = 7
KNOWN = [9600, 1736, 37743, 56259, 37400]


@given(TERMS, SEEDS)
def test_it_is_the_group_of_the_identity_under_every_seed(term: Iri | Literal, seed: int) -> None:
    h = np.array([identify_one(str(term), seed)[1]], np.uint64)
    assert group_of(str(term)) == groups_of(h, FINEST)[0]


@given(st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False), SEEDS)
def test_values_of_tuples_have_the_group_of_their_identity(value: Any, seed: int) -> None:
    kind = {bool: Kind.BOOLEAN, int: Kind.INTEGER, float: Kind.DOUBLE}[type(value)]
    doubles = np.array([value], np.float64) if kind == Kind.DOUBLE else None
    whole = None if kind == Kind.DOUBLE else np.array([value], np.int64)
    column = TupleColumn(np.full(1, kind, np.uint8), dbl=doubles, man=whole)
    _, h = _number_identity(column, seed)
    assert group_of(value) == groups_of(h, FINEST)[0]


@given(TERMS, st.integers(1, FINEST))
def test_finer_groups_nest_in_coarser_ones(term: Iri | Literal, groups: int) -> None:
    assert group_of(str(term), groups) == group_of(str(term)) * groups // FINEST < groups


@pytest.mark.parametrize(
    ("text", "canonical_text"),
    [
        (r'"\u0061"', '"a"'),
        (r"<http://e/\u0061>", "<http://e/a>"),
        (f'"a"^^<{XSD}string>', '"a"'),
        ('"a"@EN', '"a"@en'),
        (' "a" ', '"a"'),
    ],
)
def test_all_spellings_of_a_term_have_one_group(text: str, canonical_text: str) -> None:
    assert group_of(text) == group_of(canonical_text)


def test_groups_of_known_terms_stay_what_they_are() -> None:
    """Files that were cut by these are still as good tomorrow, and elsewhere."""
    assert [group_of(t) for t in ("<http://e/a>", '"a"', 7, 0.5, True)] == KNOWN


def test_minus_zero_is_zero() -> None:
    assert group_of(-0.0) == group_of(0.0)


@pytest.mark.parametrize(
    "term",
    ["", "a", "_:b", "<a>", '"a', "<http://e/a> .\n<x:s> <x:p> <x:o>", "<< <x:s> <x:p> <x:o> >>",
     '"a" . # no', None, 2**63, b"<http://e/a>", ("<http://e/a>",)],
)  # fmt: skip
def test_what_has_no_group_is_refused(term: Any) -> None:
    with pytest.raises(UsageError, match=r"no RDF term|no term that has a group"):
        group_of(term)


@pytest.mark.parametrize("groups", [0, -1, FINEST + 1, True, 1.5, None, "12"])
def test_so_many_groups_there_cannot_be(groups: Any) -> None:
    with pytest.raises(UsageError, match="There cannot be"):
        group_of("<http://e/a>", groups)


PREFIX = "PREFIX : <http://e/>\n"
SLIDING = "FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]\n"
QUERIES = {
    "groups": f"{PREFIX}SELECT ?k (COUNT(*) AS ?n) {SLIDING}"
    "WHERE { WINDOW :w { ?k :p ?v } } GROUP BY ?k",
    "groups of literals": f"{PREFIX}SELECT ?k (COUNT(*) AS ?n) {SLIDING}"
    "WHERE { WINDOW :w { ?s :p ?k } } GROUP BY ?k",
    "joins": f"{PREFIX}SELECT ?k ?v ?w {SLIDING}WHERE {{ WINDOW :w {{ ?k :p ?v . ?k :q ?w }} }}",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_engine_sends_a_key_to_the_partition_of_its_group(name: str, tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    with path.open("w") as file:
        for i in range(400):
            for p in "pq":
                file.write(f'<http://e/k{i}> <http://e/{p}> "{i % 90}" {1000 + i} .\n')
    found = dict(_routed(path, QUERIES[name], tmp_path / "ck"))
    assert len(found) in (90, 400)
    table = deal_round_robin(FINEST, PARTS).partition
    assert found == {key: table[group_of(key)] for key in found}


def _routed(stream: Path, text: str, root: Path) -> Iterator[tuple[str, int]]:
    """The keys of a query's results and the partitions that wrote these."""
    with levada.Engine(spark=False, checkpoint=root, partitions=PARTS) as engine:
        engine.stream("http://e/s", stream)
        engine.register(text, name="q")
        told: list[Manifest] = []
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
        for manifest in told:
            plan = plan_of(root, facts_of(root), manifest.plan)
            for segment in manifest.segments:
                partition = int(segment.split("-")[2])
                for _, batch in batches(plan, [segment], lambda name: map_(str(root), name)):
                    yield from ((key, partition) for key in batch.columns["k"])
