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
import numpy.typing as npt
import polars as pl

from bench.apart import supplied
from bench.data import SILENCE, SPAN
from bench.engine import run_engine
from bench.result import Result
from bench.steady import END, Supply, name_of
from bench.steady import WARM as WARM_UP

CLASSES, STEP = 1000, 10_000
EPOCH, WARM = 100_000, 3
ROUNDS = 12  # at most
SIDES = ("plain", "one", "thousand")
_SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
QUERY = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT60S STEP PT10S]
WHERE {{ WINDOW <e:w> {{ ?x a <e:{0}> }} }}"""


def prepare(folder: Path, n: int, epoch: int, classes: int, rounds: int) -> tuple[int, int]:
    """Writes the stream in rounds, and the ontology; gives how many closes of a round have
    something, and of the warm-up.
    """
    rng = np.random.default_rng(5)
    start = -(-(WARM * epoch * SPAN // n + SILENCE) // STEP) * STEP
    period = SPAN + SILENCE
    closes = [_write(folder / WARM_UP, 0, rng.integers(0, classes, WARM * epoch), n, 0)]
    which = rng.integers(0, classes, n)
    closes += [
        _write(folder / name_of(i), i + 1, which, n, start + i * period) for i in range(rounds)
    ]
    _write(folder / END, rounds + 1, which[:1], n, start + rounds * period)
    middle = max(classes // 30, 1)
    said = [f"<e:C{c}> {_SUB} <e:M{c % middle}> .\n" for c in range(classes)]
    said += [f"<e:M{m}> {_SUB} <e:Top> .\n" for m in range(middle)]
    (folder / "o.nt").write_text("".join(said))
    return closes[1], closes[0]


def _write(folder: Path, number: int, which: npt.NDArray[np.int64], n: int, start: int) -> int:
    """A file of instances of these classes, ``n`` of which take ``SPAN``; gives how many closes
    have something.
    """
    (folder / "s").mkdir(parents=True)
    ts = start + np.arange(len(which)) * SPAN // n
    rows = pl.DataFrame({"i": np.arange(len(which)), "c": which, "t": ts})
    line = pl.format(f"<e:x{number}-{{}}> {_TYPE} <e:C{{}}> {{}} .", "i", "c", "t")
    rows.select(line).write_csv(
        folder / "s" / f"{number:05}.nt", include_header=False, quote_style="never"
    )
    return len(np.unique((ts // STEP)[:, None] + np.arange(1, 7)[None, :]))


def levada(supply: dict[str, Any], side: str, stepped: bool) -> dict[str, Any]:
    """A side, in this process."""
    given = Supply.of(supply)
    more = {} if side == "plain" else {"ontology": given.folder / "o.nt", "entailment": "rdfs"}
    queries = {
        "top": {"text": QUERY.format("C0" if side == "plain" else "Top"), "dialect": "rspql"}
    }
    return run_engine(
        {"e:s": {"source": str(given.into / "s")}},
        queries,
        epoch_rows=given.epoch,
        warm=given.warm,
        stepped=stepped,
        given=more,
        supply=given,
    )


def one_side(side: str, n: int, epoch: int, rounds: int, *, stepped: bool) -> dict[str, Any]:
    """Measures a side on data of its own, the number of its results checked."""
    with tempfile.TemporaryDirectory(prefix="levada-entailment-") as folder:
        root = Path(folder)
        expected, before = prepare(root, n, epoch, CLASSES if side == "thousand" else 1, rounds)
        given = {"rounds": rounds, "warm": WARM * epoch, "rows": n, "epoch": epoch}
        return supplied(
            "bench.entailment:levada", root, given, expected, before, side=side, stepped=stepped
        )


def run(scale: float, stepped: bool) -> Result:
    """All sides; ``levada`` is the one of 1,000 classes, ``baseline`` that of one."""
    n, epoch = max(int(1_000_000 * scale), 1000), max(int(EPOCH * scale), 100)
    rounds = ROUNDS if scale >= 1 else 1
    found = {side: one_side(side, n, epoch, rounds, stepped=stepped) for side in SIDES}
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
