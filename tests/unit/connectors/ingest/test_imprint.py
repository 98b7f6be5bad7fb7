"""An imprint gives back the statements that it was made of: those of some predicates, or all."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.static_cache import CacheRequest, make_imprint, triples_of
from levada.kernels.terms.term_ids import identify_one
from levada.operators.state.checksummed_frames import checked_parts, unpack_checked

XSD = "http://www.w3.org/2001/XMLSchema#"
OBJECTS = [
    "<http://e/o>", "<http://e/s1>", "_:b1", '"plain"', '"tab\\there"', '"hallo"@de', '"-0"',
    *(f'"{v}"^^<{XSD}double>' for v in ("-0.0E0", "0", "NaN", "-INF", "1.5e300")),
    *(f'"{v}"^^<{XSD}decimal>' for v in ("3.50", "3.5", "0.0", "1" * 40)),
    *(f'"{v}"^^<{XSD}integer>' for v in ("0", "01", "-7", str(2**70))),
    f'"2020-01-01T00:00:00.123456789Z"^^<{XSD}dateTime>', f'"x"^^<{XSD}integer>',
    f'"true"^^<{XSD}boolean>', f'"P1D"^^<{XSD}duration>',
]  # fmt: skip
SUBJECTS = [*(f"<http://e/s{i}>" for i in range(5)), "_:b1", "_:b2"]
GRAPHS = ["", "<http://e/g>", "<http://e/s1>"]


def rows(triples: Triples) -> Counter[tuple]:
    """Everything that a statement says, as often as it is there."""
    o = triples.o
    assert o.dbl is not None and o.man is not None and o.scale is not None
    columns = [triples.s, triples.p, o, *([triples.g] if triples.g else [])]
    return Counter(
        (
            *((triples.text(c, i), int(c.x[i]), int(c.y[i]), int(c.kind[i])) for c in columns),
            o.dbl[i].tobytes(), int(o.man[i]), int(o.scale[i]), int(triples.time[i]),
        )
        for i in range(triples.n)
    )  # fmt: skip


@pytest.mark.parametrize("quads", [False, True])
def test_what_is_taken_out_is_what_was_pressed(quads: bool, random_seed: int) -> None:
    draw = random.Random(random_seed)
    for size in (1, 2, 30, 400):
        predicates = [f"<http://e/p{i}>" for i in range(draw.choice((1, 4, 90)))]
        lines = [
            f"{draw.choice(SUBJECTS)} {draw.choice(predicates)} {draw.choice(OBJECTS)} "
            f"{draw.choice(GRAPHS) if quads else ''} ."
            for _ in range(size)
        ]
        text = "".join(line + "\n" for line in lines).encode()
        given = parse(text, quads=quads, timed=False, seed=3, document=9)
        blob = b"".join(checked_parts(make_imprint(given, "2.0")))
        frames, _ = unpack_checked(np.frombuffer(blob, np.uint8), "state/1")
        found = triples_of(frames, "2.0", CacheRequest(None, texts=True, values=True))
        assert found is not None and rows(found) == rows(given)
        some = {*draw.sample(predicates, draw.randint(0, min(len(predicates), 3))), "<http://e/x>"}
        halves = np.unique([np.uint64(identify_one(p, 3)[0]) for p in some])
        part = triples_of(frames, "2.0", CacheRequest(halves, texts=True, values=False))
        chosen = [i for i in range(given.n) if given.text(given.p, i) in some]
        assert (Counter() if part is None else rows(part)) == rows(
            given.take(np.array(chosen, int))
        )


def test_without_texts_none_is_unpacked_unless_a_value_needs_it() -> None:
    plain, hard = (
        parse(f"<a:s> <a:p> {o} .".encode(), quads=False, timed=False, seed=3, document=9)
        for o in ('"3.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', OBJECTS[15])
    )
    sizes = []
    for triples in (plain, hard):
        for values in (False, True):
            found = triples_of(
                make_imprint(triples, "a"), "a", CacheRequest(None, texts=False, values=values)
            )
            assert found is not None and found.o.x.tolist() == triples.o.x.tolist()
            sizes.append(found.buffer.size > 0)
    assert sizes == [False, False, False, True]
