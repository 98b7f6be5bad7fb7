"""Plans as files: exact, by tags, without code; what is damaged or foreign is a sentence."""

from __future__ import annotations

import random
import typing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import numpy as np
import pytest
import xxhash

from levada.checkpoint.epoch_context import SETUPS, Setup, encode_setup, load_setup
from levada.connectors.config.row_mapping import Part, RowMapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.static_files import StaticFile
from levada.core.event_time import MIN
from levada.core.expressions import (
    Aggregate,
    AggregateFunction,
    Call,
    Const,
    Function,
    Param,
    Var,
)
from levada.core.rdf_terms import Literal
from levada.core.stream_facts import StreamFacts
from levada.errors import CheckpointError
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.encoding import plan_codec
from levada.plan.encoding.plan_codec import (
    RECORDS,
    STEPS,
    VALUES,
    encode,
    encode_plan,
    read_file,
    read_plan,
)
from levada.plan.encoding.tag_registry import Registry
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.plan import Plan
from levada.plan.execution.row_layout import Facet, Layout, Span
from levada.plan.execution.steps import Step
from levada.plan.topology.catalog_file import CATALOGS, encode_catalog, read_catalog
from levada.plan.topology.topology import Topology

GROUPED = """SELECT ?s (SUM(?o) AS ?n) (GROUP_CONCAT(?o; SEPARATOR=", ") AS ?all)
FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT{}S STEP PT5S]
WHERE {{ WINDOW <w> {{ ?s <http://e/p{}> ?o OPTIONAL {{ ?o <http://e/q> ?u }} }}
         FILTER(?o > {} && !BOUND(?u)) }} GROUP BY ?s"""
SEEDS = range(300)


def topology(count: int = 4) -> Topology:
    found = Topology({"http://e/s": StreamFacts(closed=True)}, [None, "http://e/g"])
    for i in range(count):
        text = GROUPED.format(10 + i % 2, i, i)
        found.add(f"q{i}", translate(parse(text), text=text), MIN)
    return found


@pytest.fixture(scope="module")
def plan() -> Plan:
    return topology().seal()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "1-ab.plan"


def test_every_step_has_a_tag() -> None:
    """A new step gets a line in ``STEPS``."""
    assert set(STEPS.values()) == set(typing.get_args(Step))


@pytest.mark.parametrize("registry", [CATALOGS, SETUPS])
def test_all_that_a_class_refers_to_can_be_written(registry: Registry) -> None:
    for tag, cls in registry.classes.items():
        assert registry.fields(cls).tag == tag


def test_no_name_of_a_class_or_module_is_in_a_file(plan: Plan) -> None:
    written = encode_plan(plan) + encode_catalog(topology(), {})
    classes = [cls for cls in (VALUES | RECORDS).values() if len(cls.__name__) > 5]
    assert not [cls.__name__ for cls in classes if cls.__name__.encode() in written]
    assert b"levada" not in written and b"numpy" not in written


def test_a_plan_comes_back_as_it_was(plan: Plan, path: Path) -> None:
    path.write_bytes(encode_plan(plan))
    again = read_plan(path)
    assert encode_plan(again) == path.read_bytes()
    assert (again.queries, again.order, again.streams) == (plan.queries, plan.order, plan.streams)
    for number, node in plan.nodes.items():
        other = again.nodes[number]
        assert (other.step, other.layout, other.members) == (node.step, node.layout, node.members)
        assert type(other.layout) is Layout and type(other.members) is MemberTable
        assert all(type(slot) is Facet for slot in other.layout.slots)
        np.testing.assert_array_equal(other.windows.range, node.windows.range)
        assert other.home.dtype == node.home.dtype and other.home.flags.writeable


def test_a_catalog_comes_back_as_it_was(path: Path) -> None:
    before = topology()
    path.write_bytes(encode_catalog(before, {"q1": "x"}))
    after, identities = read_catalog(path)
    assert identities == {"q1": "x"}
    anew = dict.fromkeys(["graph", "streams", "sharing", "builder"])
    assert vars(after) | anew == vars(before) | anew
    assert vars(after.streams) == vars(before.streams)
    anew = dict.fromkeys(["common", "_depths"])
    assert vars(after.graph) | anew == vars(before.graph) | anew
    anew = dict.fromkeys(["_graph", "orders"])
    assert vars(after.sharing) | anew == vars(before.sharing) | anew
    assert encode_plan(after.seal()) == encode_plan(before.seal())


def test_what_is_shared_is_written_once() -> None:
    """A condition that doubles with each level is as many values as it has levels."""
    shared: Call = Call(Function.NOT, (Var("0"),))
    sizes = []
    for _ in range(16):
        shared = Call(Function.AND, (shared, shared))
        sizes.append(len(encode(shared, plan_codec._PLANS)))
    assert sizes[-1] - sizes[-2] < 40


def test_a_deep_expression_takes_no_deep_recursion(path: Path) -> None:
    deep: Call = Call(Function.NOT, (Var("0"),))
    for i in range(400):
        deep = Call(Function.ADD, (deep, Const(Literal(str(i)))))
    path.write_bytes(encode(deep, plan_codec._PLANS))
    found: object = read_file(path, Call, plan_codec._PLANS)
    for i in reversed(range(400)):
        assert isinstance(found, Call)
        found, constant = found.args
        assert constant == Const(Literal(str(i)))
    assert found == Call(Function.NOT, (Var("0"),))


@pytest.mark.parametrize(
    "value",
    [
        Call(Function.IN, ()),
        Call(Function.IF, (Var("a"), Param(3), Const(Literal("é\x00", language="en")))),
        Aggregate(AggregateFunction.COUNT, None, True),
        Aggregate(AggregateFunction.GROUP_CONCAT, Var("x"), separator=""),
        Layout((Facet.ID | Facet.TEXT, Facet(0)), (Span(True, False),), weighted=True),
    ],
)
def test_values_come_back_as_they_were(value: object, path: Path) -> None:
    path.write_bytes(encode(value, plan_codec._PLANS))
    again = read_file(path, type(value), plan_codec._PLANS)
    assert again == value and repr(again) == repr(value)


def test_setups_come_back_as_they_were(path: Path) -> None:
    mapping = RowMapping(
        (("v", "integer"),),
        ("k", "v"),
        (("t", "v / 2"),),
        (((Part("<http://e/"), Part("k", "iri")), (Part("<p>"),), (Part("v", "value"),)),),
    )
    setup = Setup(
        [StreamConfig.from_options("s", "s.nt", lateness="10s"), StreamConfig("t", "t.csv", "csv")],
        [StaticFile("g.nq", "nq", frozenset({None, "http://e/g", "http://e/h"}), lines=("a", "b"))],
    )
    setup.streams.append(replace(setup.streams[1], schema=(("v", "integer"),), mapping=mapping))
    for given in (setup, Setup([], []), Setup(setup.streams[:1], [])):
        path.write_bytes(encode_setup(given))
        load_setup.cache_clear()
        assert load_setup(str(path)) == given


def resealed(data: bytes) -> bytes:
    """The bytes with the checksum that they should have."""
    return data[:8] + xxhash.xxh3_64_intdigest(data[16:]).to_bytes(8, "little") + data[16:]


def altered(data: bytes, seed: int) -> bytes:
    """Some bytes changed, or some cut out."""
    draw, found = random.Random(seed), bytearray(data)
    for _ in range(draw.choice((1, 1, 3))):
        at = draw.randrange(len(found))
        found[at] = draw.choice((0, 1, 0x7F, 0xFF, found[at] ^ 1 << draw.randrange(8)))
    return bytes(found[: draw.choice((len(found), len(found), draw.randrange(len(found))))])


@pytest.mark.parametrize("seed", SEEDS)
def test_an_altered_file_is_told_or_means_the_same(seed: int, plan: Plan, path: Path) -> None:
    written = encode_plan(plan)
    path.write_bytes(altered(written, seed))
    try:
        assert encode_plan(read_plan(path)) == written
    except CheckpointError as error:
        assert str(path) in error.message and "an empty folder" in error.hint


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_forged_file_is_told_or_is_a_plan(seed: int, plan: Plan, path: Path) -> None:
    """Behind the checksum everything is validated, too: there is no other exception."""
    path.write_bytes(resealed(altered(encode_plan(plan), seed)))
    try:
        assert isinstance(read_plan(path), Plan)
    except CheckpointError as error:
        assert str(path) in error.message
    path.write_bytes(resealed(altered(encode_catalog(topology(2), {}), seed)))
    try:
        assert isinstance(read_catalog(path)[0], Topology)
    except CheckpointError as error:
        assert str(path) in error.message


@dataclass(frozen=True)
class Word:
    """Stands for a class of another version."""

    text: str


@dataclass(frozen=True)
class Words:
    """And so does this."""

    text: tuple[str, ...]


@pytest.mark.parametrize(
    ("tag", "cls", "value", "told"),
    [
        ("speech", Word, Word("a"), "does not know the tag 'speech'"),
        ("iri", Word, Word("a"), "the tag 'iri' has other fields"),
        ("variable", Word, Word("a"), "the tag 'variable' has other fields"),
        ("span", Span, Span("x", True), "cannot be read"),  # type: ignore[arg-type]
        ("span", Span, Span(True, True), "holds something else"),
    ],
)
def test_what_this_version_does_not_know_is_told(
    tag: str, cls: type, value: object, told: str, path: Path
) -> None:
    path.write_bytes(encode(value, Registry({}, {tag: cls})))
    with pytest.raises(CheckpointError, match=told):
        read_plan(path)


Held = TypeVar("Held")


@dataclass(frozen=True)
class Box(Generic[Held]):
    """A class of any other's values."""

    held: Held
    more: tuple[Box[Word], ...] = ()


def test_generic_classes_hold_what_has_a_tag(path: Path) -> None:
    registry = Registry({"word": Word, "box": Box}, {})
    value = Box(Box(Word("a")), (Box(Word("b")), Box(Word("a"))))
    path.write_bytes(encode(value, registry))
    assert read_file(path, Box, registry) == value


@pytest.mark.parametrize("cut", [0, 7, 23, 24, 100, -1])
def test_a_file_that_is_cut_short_is_told(cut: int, plan: Plan, path: Path) -> None:
    path.write_bytes(encode_plan(plan)[:cut])
    with pytest.raises(CheckpointError, match="it is cut short"):
        read_plan(path)


def test_a_later_encoding_and_a_missing_file_are_told(plan: Plan, path: Path) -> None:
    with pytest.raises(CheckpointError, match="No such file or directory"):
        read_plan(path)
    data = encode_plan(plan)
    path.write_bytes(data[:6] + b"\x02\x00" + data[8:])
    with pytest.raises(CheckpointError, match="in version 2, and this is version 1"):
        read_plan(path)


def test_a_small_file_is_no_huge_plan(path: Path) -> None:
    """Equal values stand as one, but not so many that memory would not hold them."""
    blocks = [(0, 1 << 40, [msgspec.Raw(msgspec.msgpack.encode(["a"]))])]
    head = msgspec.msgpack.encode(([("variable", ["name"])], blocks, []))
    body = len(head).to_bytes(8, "little") + head + bytes(-len(head) % 8)
    start = plan_codec.MAGIC + plan_codec.VERSION.to_bytes(2, "little") + bytes(8)
    path.write_bytes(resealed(start + body))
    with pytest.raises(CheckpointError, match="a column of another length"):
        read_file(path, Var, plan_codec._PLANS)
