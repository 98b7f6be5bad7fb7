"""The W3C test suite of JSON-LD 1.1 (``w3c/json-ld-api``), toRdf and expansion, through the intake
of documents.

An expansion is compared by the statements of the two documents. Left out are tests of JSON-LD 1.0,
of HTML, and those with an option that Levada does not have; remote contexts are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from reason_table import reason_table

from levada.connectors.ingest.parse.document_limits import DIRECTION, Malformed
from levada.connectors.ingest.parse.documents import document_text

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "json-ld-api"
SUITE = Path(os.environ.get("LEVADA_JSON_LD_SUITE", SHARED)) / "tests"
UNREADABLE = ("#t0122",)  # an expansion with an @id of null, which is not JSON-LD
OPTIONS = ("expandContext", "rdfDirection", "produceGeneralizedRdf", "normative")
REMOTE = "lies elsewhere, and nothing is fetched"

HEAD = """
## JSON-LD

These are W3C's tests of JSON-LD 1.1 (`w3c/json-ld-api`). Tests of HTML, and tests with an option
that Levada does not have, are left out. Expansions are compared by the statements of the two
documents. Remote contexts are refused.
"""

REFUSED = {
    DIRECTION: "di01 di02 di03 di04 di05 di06 di07",
    REMOTE: "c031 c034 e126 e127 e128 so05 so06 so08 so09 so11",
    "Invalid @base": "li12",  # the standard drops what has no IRI then
    "has a segment . or .., which is not resolved": "0122 0123 e062 e091",
    "the context of Inner, a key of a type map, is not supported": "c013",
}
"""Tests that are not supported: of toRdf by number, of the expansion by that of its test there."""


def cases(name: str) -> list[dict[str, Any]]:
    manifest = SUITE / f"{name}-manifest.jsonld"
    if not manifest.is_file():
        return []
    found: dict[str, Any] = json.loads(manifest.read_bytes())
    return [
        {**case, "suite": name, "base": found["baseIri"] + case["input"]}
        for case in found["sequence"]
        if is_taken(case) and not (name == "expand" and case["@id"] in UNREADABLE)
    ]


def is_taken(case: dict[str, Any]) -> bool:
    option = case.get("option", {})
    versions = option.get("specVersion"), option.get("processingMode")
    is_old = "json-ld-1.0" in versions or case["input"].endswith("html")
    return not is_old and not any(option.get(name) for name in OPTIONS)


CASES = cases("toRdf") + cases("expand")


def number(case: dict[str, Any]) -> str:
    """The number of a test, by which toRdf has it, too."""
    name = str(case["@id"]).removeprefix("#t")
    return f"e{name[1:]}" if case["suite"] == "expand" and name.isdigit() else name


def statements(path: str, base: str) -> ox.Dataset:
    text = document_text((SUITE / path).read_bytes(), "jsonld", base)
    return canonical(text)


def canonical(text: bytes) -> ox.Dataset:
    found = ox.Dataset(ox.parse(text, format=ox.RdfFormat.N_QUADS))
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return found


def outcome(case: dict[str, Any]) -> str:
    """Nothing if a test passes, else the reason why a document is refused, or that it is wrong."""
    base = case.get("option", {}).get("base", case["base"])
    try:
        found = statements(case["input"], base)
    except Malformed as fault:
        return "" if "jld:NegativeEvaluationTest" in case["@type"] else str(fault)
    if "jld:NegativeEvaluationTest" in case["@type"]:
        return "it is read"
    if "expect" not in case:
        return ""
    if case["suite"] == "expand":
        expected = statements(case["expect"], "")  # what is still relative is no IRI
    else:
        expected = canonical((SUITE / case["expect"]).read_bytes())
    return "" if found == expected else "wrong"


def not_supported(case: dict[str, Any]) -> str:
    """Why a test does not pass; "" if it does."""
    return next((why for why, names in REFUSED.items() if number(case) in names.split()), "")


def lines() -> Iterator[str]:
    """The part of ``docs/conformance.md`` on JSON-LD."""
    yield HEAD
    yield "| suite | tests | passed |"
    yield "|---|---|---|"
    for name in ("toRdf", "expand"):
        tests = [case for case in CASES if case["suite"] == name]
        yield f"| {name} | {len(tests)} | {sum(not outcome(case) for case in tests)} |"
    yield "\nNot supported:\n"
    listed = {why.rstrip("."): names.split() for why, names in REFUSED.items()}
    yield from reason_table(listed)
