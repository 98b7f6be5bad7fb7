"""``forms``: 1 to 1,000 queries whose conditions below a join are of other forms, with ``exact``
(1 and 100, since 1,000 take minutes there) and with ``relax``.

    none      ?x :p ?v . ?x :q ?z, and of every other query FILTER(?v > a)
    unequal   .. FILTER(?v != a)                        each wants nearly all rows
    starts    .. FILTER(STRSTARTS(STR(?v), "a"))        each wants a thousandth of them
    days      .. FILTER(?v >= a && ?v < a + 1), dates   likewise
    contains  .. FILTER(CONTAINS(STR(?v), "a"))         likewise, and no index tells it

``us`` is CPU of a triple behind the first windows, results and all; ``result``: what it is more
than one query's, by results beyond those of one query, where there are so many that they are what
costs. Counts are those that follow from how the stream is made, which is looked at first. Each
form has a process of its own, in which epochs are stepped and sides take turns; the best of
``ROUNDS`` counts.
"""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.marks import Marks, triples
from bench.result import Result, check_count
from levada import Engine
from levada.engine.query_request import QueryRequest

COUNTS = {"exact": (1, 100), "relax": (1, 100, 1000)}
SUBJECTS, WINDOWS, RANGE = 1000, 8, 10_000
HIT = 100  # one of so many subjects has both triples
WARM, ROUNDS = 2, 2
HEAD = "SELECT ?x ?v FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT10S STEP PT10S]\n"
GROUP = "WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?v . ?x <e:q> ?z {} }} }}"
XSD = "http://www.w3.org/2001/XMLSchema#"
FORMS = {
    "none": ("", "FILTER(?v > {0})"),
    "unequal": ("FILTER(?v != {0})",) * 2,
    "starts": ('FILTER(STRSTARTS(STR(?v), "{0}:"))',) * 2,
    "days": (f'FILTER(?v >= "{{1}}"^^<{XSD}date> && ?v < "{{2}}"^^<{XSD}date>)',) * 2,
    "contains": ('FILTER(CONTAINS(STR(?v), "{0}:"))',) * 2,
}


def write(path: Path, subjects: int, form: str) -> None:
    """Writes the stream: of each window a triple of each predicate a subject."""
    lines = []
    for window in range(WINDOWS):
        for i in range(subjects):
            ts, number = window * RANGE + i * RANGE // subjects, window * subjects + i
            other = number if i % HIT == 0 else f"{number}o"
            value = _value(form, _turn(number), i)
            lines.append(f"<e:{number}> <e:p> {value} {ts} .\n")
            lines.append(f"<e:{other}> <e:q> <e:z{i % 100}> {ts} .\n")
    path.write_text("".join(lines))


def _turn(number: int) -> int:
    """Which of a thousand values a subject has."""
    return number * 7 % 1000


def _value(form: str, turn: int, i: int) -> str:
    """It as a literal."""
    match form:
        case "starts":
            return f'"{turn}:{i}"'
        case "contains":
            return f'":{turn}:{i}"'
        case "days":
            return f'"{_day(turn)}"^^<{XSD}date>'
        case _:
            return f'"{turn}"^^<{XSD}integer>'


def _day(turn: int) -> str:
    return f"{date(2026, 1, 1) + timedelta(turn)}"


def expected(form: str, queries: int, subjects: int) -> int:
    """How many results there are, in all windows but the last."""
    found = 0
    for number in range(subjects * (WINDOWS - 1)):
        turn = _turn(number)
        if number % subjects % HIT == 0:
            match form:
                case "none":
                    found += (queries + 1) // 2 + min(turn, queries) // 2
                case "unequal":
                    found += queries - (turn < queries)
                case "contains":  # "7:" is in "17:", too
                    found += sum(str(turn).endswith(str(i)) for i in range(queries))
                case _:
                    found += turn < queries
    return found


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
            forms = [FORMS[form][i % 2] for i in range(queries)]
            conditions = [of.format(i, _day(i), _day(i + 1)) for i, of in enumerate(forms)]
            texts = [HEAD + GROUP.format(condition) for condition in conditions]
            engine.register_all([QueryRequest(text, f"q{i}") for i, text in enumerate(texts)])
            engine._on_epoch(marks.see)
            engine.start(once=True, keep_open=True)
            engine.await_end()
        state = sum(file.stat().st_size for file in (root / "state").iterdir())
    cost = marks.behind(2 * WARM * subjects)
    return {"count": marks.results, "us": round(cost, 2), "state_kb": round(state / 1000)}


def sides(path: str, subjects: int, form: str) -> dict[str, dict[str, Any]]:
    """All modes and numbers of queries of a form, in turn."""
    found: dict[str, dict[str, Any]] = {}
    each = [(mode, n) for n in COUNTS["relax"] for mode in COUNTS if n in COUNTS[mode]]
    again = [(mode, n) for mode, n in each if mode == "relax" or n == 1]
    for mode, queries in each + again * (ROUNDS - 1):
        got = side(path, mode, queries, subjects, form)
        check_count(f"{form} {mode} {queries}", got["count"], expected(form, queries, subjects))
        best = found.get(f"{form}_{mode}_{queries}", got)
        found[f"{form}_{mode}_{queries}"] = min(best, got, key=lambda one: one["us"])
    _by_result(found, form, 2 * subjects * (WINDOWS - 1))
    return found


def _by_result(found: dict[str, dict[str, Any]], form: str, size: int) -> None:
    """What a result of many queries costs, where a triple has more than one."""
    one, many = (found[f"{form}_relax_{n}"] for n in (1, COUNTS["relax"][-1]))
    more = (many["count"] - one["count"]) / size
    if more > 1:
        many["result"] = round((many["us"] - one["us"]) / more, 2)


def run(scale: float, stepped: bool) -> Result:
    """Each form in a process of its own."""
    subjects = max(int(SUBJECTS * scale), 100)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="levada-forms-") as folder:
        for form in FORMS:
            path = Path(folder) / f"{form}.nt"
            write(path, subjects, form)
            found |= apart("bench.forms:sides", path=str(path), subjects=subjects, form=form)
    relax, exact = found["none_relax_100"], found["none_exact_100"]
    return Result("forms", relax, exact, round(exact["us"] / relax["us"], 2), found)
