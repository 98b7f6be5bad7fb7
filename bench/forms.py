"""``forms``: 1 to 1,000 queries whose conditions below a join are of other forms, with ``exact``
and with ``relax``.

    none      ?x :p ?v . ?x :q ?z, and of every other query FILTER(?v > a)
    unequal   .. FILTER(?v != a)                     each wants nearly all rows
    starts    .. FILTER(STRSTARTS(STR(?v), "a"))     each wants a thousandth of them

``us`` is CPU of a triple behind the first windows, results and all; a query has few of these, so
what is measured is what joins and conditions cost. Both modes give the same counts, which is looked
at first. Epochs are stepped in one process each, in turn; the best of ``ROUNDS`` counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.marks import Marks, triples
from bench.result import Result, check_count
from levada import Engine
from levada.engine.asked import Asked

COUNTS = (1, 10, 100, 1000)
SUBJECTS, WINDOWS, RANGE = 2000, 12, 10_000
HIT = 100  # one of so many subjects has both triples
WARM, ROUNDS = 2, 2
HEAD = "SELECT ?x ?v FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT10S STEP PT10S]\n"
GROUP = "WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?v . ?x <e:q> ?z {} }} }}"
FORMS = {
    "none": ("", "FILTER(?v > {})"),
    "unequal": ("FILTER(?v != {})",) * 2,
    "starts": ('FILTER(STRSTARTS(STR(?v), "{}:"))',) * 2,
}


def write(path: Path, subjects: int, form: str) -> None:
    """Writes the stream: of each window a triple of each predicate a subject."""
    lines = []
    for window in range(WINDOWS):
        for i in range(subjects):
            ts, number = window * RANGE + i * RANGE // subjects, window * subjects + i
            other = number if i % HIT == 0 else f"{number}o"
            turn = number * 7 % 1000
            value = f'"{turn}:{i}"' if form == "starts" else f'"{turn}"^^<{XSD}>'
            lines.append(f"<e:{number}> <e:p> {value} {ts} .\n")
            lines.append(f"<e:{other}> <e:q> <e:z{i % 100}> {ts} .\n")
    path.write_text("".join(lines))


XSD = "http://www.w3.org/2001/XMLSchema#integer"


def side(path: str, mode: str, queries: int, subjects: int, form: str) -> dict[str, Any]:
    """One run: results, CPU of a triple after the warm-up, bytes of state."""
    marks = Marks(triples)
    with tempfile.TemporaryDirectory(prefix="levada-forms-") as folder:
        root = Path(folder) / "c"
        with Engine(
            spark=False, checkpoint=root, partitions=1, seed=7, epoch_rows=4 * subjects,
            keep_results=False, sharing=mode,
        ) as engine:  # fmt: skip
            engine.stream("e:s", path)
            texts = [HEAD + GROUP.format(FORMS[form][i % 2].format(i)) for i in range(queries)]
            engine.register_all([Asked(text, f"q{i}") for i, text in enumerate(texts)])
            engine._on_epoch(marks.see)
            engine.start(once=True, keep_open=True)
            engine.await_end()
        state = sum(file.stat().st_size for file in (root / "state").iterdir())
    cost = marks.behind(2 * WARM * subjects)
    return {"count": marks.results, "us": round(cost, 2), "state_kb": round(state / 1000)}


def run(scale: float, stepped: bool) -> Result:
    """Each form and number of queries in both modes, side by side."""
    subjects = max(int(SUBJECTS * scale), 100)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="levada-forms-") as folder:
        for form in FORMS:
            path = Path(folder) / f"{form}.nt"
            write(path, subjects, form)
            for queries in COUNTS:
                for mode in ("exact", "relax") * ROUNDS:
                    got = apart(
                        "bench.forms:side", path=str(path), mode=mode, queries=queries,
                        subjects=subjects, form=form,
                    )  # fmt: skip
                    exact = found.setdefault(f"{form}_exact_{queries}", got)
                    check_count(f"{form} {mode} {queries}", got["count"], exact["count"])
                    best = found.get(f"{form}_{mode}_{queries}", got)
                    found[f"{form}_{mode}_{queries}"] = min(best, got, key=lambda one: one["us"])
    relax, exact = found["none_relax_100"], found["none_exact_100"]
    return Result("forms", relax, exact, round(exact["us"] / relax["us"], 2), found)
