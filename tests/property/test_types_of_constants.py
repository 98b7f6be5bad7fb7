"""A query says the same alone and beside queries that differ from it in the type of a constant
alone, in each mode of sharing, in each order, registered together or one after the other.

``LEVADA_CASES``: so many sets of queries.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from levada import Engine
from levada.engine.query import collect_reports
from levada.plan.sharing.sharing_modes import Sharing
from support.polling import until

pytestmark = pytest.mark.timeout(0)
CASES = int(os.environ.get("LEVADA_CASES") or 12)
CONSTANTS = (
    "5", "2.5", "1e0", '"7"^^xsd:byte', '"300"^^xsd:byte', '"x"^^xsd:integer', '"NaN"^^xsd:double',
    '"2024-01-01"^^xsd:date', '"2024-01-01T00:00:00Z"^^xsd:dateTime', '"12:00:00"^^xsd:time',
    '"P1D"^^xsd:dayTimeDuration', '"2024"^^xsd:gYear', '"0A"^^xsd:hexBinary', "true", '"a"',
    '"a"@en', '"a"^^:t', ":u",
)  # fmt: skip
BODIES = (
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :m ?m }} FILTER(?m {op} {k}) }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :m ?m FILTER(!(?m {op} {k})) }} }}",
    "SELECT ?c ?y {w} {{ WINDOW :w {{ ?c :m ?m BIND(?m {op} {k} AS ?y) }} }}",
    "SELECT ?c (?m {op} {k} AS ?y) {w} {{ WINDOW :w {{ ?c :m ?m }} }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :p ?v FILTER EXISTS {{ ?c :m ?m FILTER(?m {op} {k}) }} }} }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :p ?v MINUS {{ ?c :m ?m FILTER(?m {op} {k}) }} }} }}",
    "SELECT (COUNT(*) AS ?z) {w} {{ WINDOW :w {{ ?c :m ?m FILTER(?m {op} {k}) }} }}",
    "SELECT (SUM(IF(?m {op} {k}, 1, 0)) AS ?z) {w} {{ WINDOW :w {{ ?c :m ?m }} }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :m ?m }} FILTER(COALESCE(?m {op} {k}, false)) }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :m ?m ; :p ?v FILTER(?m {op} {k}) }} }}",
    "SELECT ?c ?v {w} {{ WINDOW :w {{ ?c :p ?v OPTIONAL {{ ?c :m ?m FILTER(?m {op} {k}) }} }} }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :m ?m FILTER(?m IN ({k}, {k2})) }} }}",
    "SELECT ?c {w} {{ WINDOW :w {{ ?c :m ?m }} }} GROUP BY ?c HAVING(MAX(?m) {op} {k})",
    "SELECT (COUNT(?m + {k} > 1) AS ?z) {w} {{ WINDOW :w {{ ?c :m ?m }} }}",
)  # fmt: skip
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
MODES = ("off", "exact", Sharing.CONTAINMENT, "relax")
PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]"
XSD = "http://www.w3.org/2001/XMLSchema#"
NQUADS = {
    "5": f'"5"^^<{XSD}integer>', "2.5": f'"2.5"^^<{XSD}decimal>', "1e0": f'"1e0"^^<{XSD}double>',
    "true": f'"true"^^<{XSD}boolean>', ":u": "<http://e/u>", '"a"^^:t': '"a"^^<http://e/t>',
}  # fmt: skip
Reports = list[tuple[int | None, Counter[str]]]


def lines(count: int) -> str:
    """Elements with a value of each type, six a second, over so many seconds."""
    found = []
    for i in range(6 * count):
        constant = CONSTANTS[i % len(CONSTANTS)]
        term = NQUADS.get(constant) or constant.replace("xsd:", f"<{XSD}") + ">" * (
            "^^" in constant
        )
        for name, value in (("m", term), ("p", f'"{i}"')):
            found.append(f"<http://e/c{i}> <http://e/{name}> {value} {i // 6 * 1000 + 100} .\n")
    return "".join(found)


def text_of(body: str, operator: str, constant: str, other: str) -> str:
    said = body.format(w=WINDOW, op=operator, k=constant, k2=other)
    return f"{PREFIXES} {said}"


def together(texts: list[str], mode: str, later: int = 0) -> list[Reports]:
    """What queries report that run together; of which the last ones come ``later``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s").mkdir()
        (folder / "s" / "0.nt").write_text(lines(4))
        with Engine(spark=False, checkpoint=folder / "ck", sharing=mode) as engine:
            engine.stream("http://e/s", folder / "s")
            first = len(texts) - later
            queries = [engine.register(text, name=f"q{i}") for i, text in enumerate(texts[:first])]
            engine.start()
            until(lambda: sum(r.elements for r in engine._records().values()) == 48)
            queries += [
                engine.register(text, name=f"q{first + i}") for i, text in enumerate(texts[first:])
            ]
            until(lambda: all(query._lifetime.query is not None for query in queries))
            (folder / "1.nt").write_text(lines(9)[len(lines(4)) :])
            (folder / "1.nt").rename(folder / "s" / "1.nt")
            until(lambda: sum(r.elements for r in engine._records().values()) == 108)
            engine.stop()
            return [
                [(r.time, Counter(map(str, r.rows.rows()))) for r in collect_reports(query).reports]
                for query in queries
            ]


@pytest.mark.long
def test_a_query_says_the_same_beside_constants_of_other_types(random_seed: int) -> None:
    different = 0
    for case in range(CASES):
        draw = random.Random(f"{random_seed} {case}")
        body, operator, mode = draw.choice(BODIES), draw.choice(OPERATORS), draw.choice(MODES)
        constants = draw.sample(CONSTANTS, draw.choice((2, 2, 3)))
        texts = [text_of(body, operator, k, draw.choice(CONSTANTS)) for k in constants]
        later = draw.randrange(len(texts))
        alone = [
            together([text], mode, later=int(i >= len(texts) - later))[0]
            for i, text in enumerate(texts)
        ]
        found = together(texts, mode, later)
        assert found == alone, (random_seed, case, mode, later, texts)
        different += any(reports != alone[0] for reports in alone)
    assert different >= CASES // 12
