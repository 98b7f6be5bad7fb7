"""``entailment``: instances of a class with 1,000 sub-classes, counted over a window, beside one
with a single sub-class.

    one        ?x a :Top, one sub-class, which all triples name
    thousand   ?x a :Top, 1,000 sub-classes in a hierarchy of two levels, uniform
    plain      ?x a :C0 without entailment, all triples of :C0

The cost of a triple is to follow from its matches and not from the ontology: ``growth_1000``
compares ``thousand`` with ``one`` (at most 1.5), ``cost_of_entailment`` compares ``one`` with
``plain``. A row is a triple; each side has a result at each close.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.apart import apart
from bench.data import SILENCE, SPAN
from bench.engine import run_engine
from bench.result import Result, check_count

CLASSES, STEP = 1000, 10_000
EPOCH, WARM = 100_000, 3
SIDES = ("plain", "one", "thousand")
_SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
QUERY = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT60S STEP PT10S]
WHERE {{ WINDOW <e:w> {{ ?x a <e:{0}> }} }}"""


def prepare(folder: Path, n: int, epoch: int, classes: int) -> int:
    """Writes the stream and the ontology; gives how many closes of the workload have something."""
    warm = WARM * epoch
    rng = np.random.default_rng(5)
    ts = np.concatenate(
        [np.arange(warm) * SPAN // n, SILENCE + warm * SPAN // n + np.arange(n) * SPAN // n]
    )
    which = rng.integers(0, classes, warm + n)
    lines = (
        f"<e:x{i}> {_TYPE} <e:C{c}> {t} .\n"
        for i, (c, t) in enumerate(zip(which.tolist(), ts.tolist(), strict=True))
    )
    (folder / "s.nt").write_text("".join(lines))
    middle = max(classes // 30, 1)
    said = [f"<e:C{c}> {_SUB} <e:M{c % middle}> .\n" for c in range(classes)]
    said += [f"<e:M{m}> {_SUB} <e:Top> .\n" for m in range(middle)]
    (folder / "o.nt").write_text("".join(said))
    closes = (ts // STEP)[:, None] + np.arange(1, 7)[None, :]
    return len(np.unique(closes))


def levada(folder: str, epoch: int, side: str, stepped: bool) -> dict[str, Any]:
    """A side, in this process."""
    streams = {"e:s": {"source": str(Path(folder) / "s.nt")}}
    given = {} if side == "plain" else {"ontology": Path(folder) / "o.nt", "entailment": "rdfs"}
    text = QUERY.format("C0" if side == "plain" else "Top")
    queries = {"top": {"text": text, "dialect": "rspql"}}
    return run_engine(
        streams, queries, epoch_rows=epoch, warm=WARM * epoch, stepped=stepped, given=given
    )


def one_side(side: str, n: int, epoch: int, *, stepped: bool) -> dict[str, Any]:
    """Measures a side on data of its own, the number of its results checked."""
    with tempfile.TemporaryDirectory(prefix="levada-entailment-") as folder:
        expected = prepare(Path(folder), n, epoch, CLASSES if side == "thousand" else 1)
        found = apart(
            "bench.entailment:levada", folder=folder, epoch=epoch, side=side, stepped=stepped
        )
        check_count(side, found["count"], expected)
        return found


def run(scale: float, stepped: bool) -> Result:
    """All sides; ``levada`` is the one of 1,000 classes, ``baseline`` that of one."""
    n, epoch = max(int(1_000_000 * scale), 1000), max(int(EPOCH * scale), 100)
    found = {side: one_side(side, n, epoch, stepped=stepped) for side in SIDES}
    cost = {side: found[side]["cpu_s"] / found[side]["rows"] for side in SIDES}
    more = {
        "growth_1000": round(cost["thousand"] / cost["one"], 3),
        "cost_of_entailment": round(cost["one"] / cost["plain"], 3),
        "plain": found["plain"],
    }
    return Result(
        "entailment",
        found["thousand"],
        found["one"],
        round(cost["one"] / cost["thousand"], 3),
        more,
    )
