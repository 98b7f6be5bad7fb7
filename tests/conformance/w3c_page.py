"""Writes ``docs/conformance.md``: which of W3C's evaluation tests pass, by folder, what is refused
in the engine's own words, and the suites over generated data.

python tests/conformance/w3c_page.py docs/conformance.md
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import rml_suite
import suites_page
import w3c_json_ld
from reason_table import reason_table
from w3c_entailment import SCHEMA, entailment_tests
from w3c_results import difference, expected
from w3c_runs import RUNS, form_of
from w3c_suite import SKIPPED, W3cTest, suite

from levada.errors import UnsupportedError
from levada.language import parse

ENTAILMENT = """
## Entailment

These are W3C's tests of the entailment regimes. Tests of RDF, RDFS and D run under `rdfs`, those
with OWL's RDF-based semantics under `owl`. The data are the ontology, too. A stream has no schema,
so tests that ask for schema triples run over static data only.
"""
HEAD = """# Conformance

This page shows which public tests Levada passes. The first table has W3C's evaluation tests of
SPARQL 1.0 and 1.1 (`w3c/rdf-tests`, as listed by their manifests). Tests of SERVICE, protocol and
update are not among them, and those of entailment are below.

Each test runs twice. A *static* run is a query over static data. In a *stream* run, the default
graph is the elements of one window, in random epochs on four partitions. Use `make conformance` to
run the tests, and `make conformance-page` to write this page.

Solutions are compared as bags, and those of ORDER BY as sequences. The names of blank nodes do not
matter. Numbers are compared by datatype and value.
"""
Verdict = tuple[str, str]
"""passed, refused, failed or skipped, and why."""


def verdict(test: W3cTest, run: str) -> Verdict:
    """How a test goes."""
    if test.name in SKIPPED:
        return "skipped", SKIPPED[test.name]
    unit = parse(test.text)
    try:
        found = RUNS[run](test)
    except UnsupportedError as error:
        return "refused", error.message
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    wrong = difference(
        expected(test.result, form_of(unit)),
        found,
        ordered=bool(unit.modifiers.order_by),
        lax=test.lax,
    )
    return ("passed", "") if wrong is None else ("failed", wrong)


def page(tests: Iterable[W3cTest]) -> Iterator[str]:
    """The lines of the page."""
    verdicts = {run: {test.name: verdict(test, run) for test in tests} for run in RUNS}
    yield HEAD
    yield (
        "| folder | tests | "
        + " | ".join(f"{run}: passed | refused | failed" for run in RUNS)
        + " |"
    )
    yield "|---|---" + "|---|---|---" * len(RUNS) + "|"
    folders = sorted({test.name.rpartition("/")[0] for test in tests})
    for folder in [*folders, ""]:
        counts = {
            run: Counter(
                v
                for name, (v, _) in verdicts[run].items()
                if name.startswith(folder + "/" * bool(folder))
            )
            for run in RUNS
        }
        cells = [str(counts[run][word]) for run in RUNS for word in ("passed", "refused", "failed")]
        yield f"| {folder or '**all**'} | {sum(counts['static'].values())} | {' | '.join(cells)} |"
    for word in ("refused", "skipped", "failed"):
        yield from _listed(word, verdicts)
    yield from entailment()


def entailment() -> Iterator[str]:
    """The lines on entailment: how many tests pass, by regime, and why others are not asked."""
    yield ENTAILMENT
    yield "| regime | tests | static: passed | failed | stream: passed | failed |"
    yield "|---|---|---|---|---|---|"
    tests = entailment_tests()
    for regime in ("rdfs", "owl"):
        asked = [test for test, own, why in tests if own == regime and not why]
        cells = []
        for run in RUNS:
            fit = [
                t for t in asked if run == "static" or not any(word in t.text for word in SCHEMA)
            ]
            found = Counter(_entails(test, regime, run) for test in fit)
            cells += [str(found[True]), str(found[False])]
        yield f"| {regime} | {len(asked)} | {' | '.join(cells)} |"
    yield "\nTests that do not run:\n"
    reasons: dict[str, list[str]] = defaultdict(list)
    for test, _, why in tests:
        if why:
            reasons[why].append(test.name.rpartition("/")[2])
    yield from reason_table(reasons)


def _entails(test: W3cTest, regime: str, run: str) -> bool:
    """Whether an entailment test passes."""
    want = expected(test.result, form_of(parse(test.text)))
    try:
        return difference(want, RUNS[run](test, regime), ordered=False, lax=test.lax) is None
    except Exception:
        return False


def _listed(word: str, verdicts: dict[str, dict[str, Verdict]]) -> Iterator[str]:
    """The tests with a verdict, by its reason."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for found in verdicts.values():
        for name, (kind, why) in found.items():
            if kind == word:
                reasons[why.splitlines()[0]].add(name)
    if reasons:
        yield f"\n## {word.capitalize()}\n"
        yield from reason_table({why: sorted(names) for why, names in sorted(reasons.items())})


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(
        "\n".join([*page(suite()), *w3c_json_ld.lines(), *rml_suite.page(), *suites_page.lines()])
        + "\n"
    )
