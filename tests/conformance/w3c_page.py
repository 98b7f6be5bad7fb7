"""Writes ``docs/conformance.md``: which of W3C's evaluation tests pass, by folder, what is refused in the engine's
own words, and the suites over generated data.

python tests/conformance/w3c_page.py docs/conformance.md
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import suites_page
from w3c_results import difference, expected
from w3c_runs import RUNS, form_of
from w3c_suite import SKIPPED, W3cTest, suite

from levada.errors import UnsupportedError
from levada.syntax import parse

HEAD = """# Conformance

W3C's evaluation tests of SPARQL 1.0 and 1.1 (`w3c/rdf-tests`, as listed by their manifests), without those of SERVICE, protocol, update
and entailment. Each is asked twice: as a *static* query over static data, and as a *stream*, its default graph as the elements of one
window, in random epochs on four partitions. `make conformance` runs them; this page is written by `make conformance-page`.

Solutions are compared as bags, those of ORDER BY as sequences, up to the names of blank nodes; numbers by datatype and value.
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
    wrong = difference(expected(test.result, form_of(unit)), found, ordered=bool(unit.modifiers.order_by), lax=test.lax)
    return ("passed", "") if wrong is None else ("failed", wrong)


def page(tests: Iterable[W3cTest]) -> Iterator[str]:
    """The lines of the page."""
    verdicts = {run: {test.name: verdict(test, run) for test in tests} for run in RUNS}
    yield HEAD
    yield "| folder | tests | " + " | ".join(f"{run}: passed | refused | failed" for run in RUNS) + " |"
    yield "|---|---" + "|---|---|---" * len(RUNS) + "|"
    folders = sorted({test.name.rpartition("/")[0] for test in tests})
    for folder in [*folders, ""]:
        counts = {
            run: Counter(v for name, (v, _) in verdicts[run].items() if name.startswith(folder + "/" * bool(folder)))
            for run in RUNS
        }
        cells = [str(counts[run][word]) for run in RUNS for word in ("passed", "refused", "failed")]
        yield f"| {folder or '**all**'} | {sum(counts['static'].values())} | {' | '.join(cells)} |"
    for word in ("refused", "skipped", "failed"):
        yield from _listed(word, verdicts)


def _listed(word: str, verdicts: dict[str, dict[str, Verdict]]) -> Iterator[str]:
    """The tests with a verdict, by its reason."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for found in verdicts.values():
        for name, (kind, why) in found.items():
            if kind == word:
                reasons[why.splitlines()[0]].add(name)
    if reasons:
        yield f"\n## {word.capitalize()}\n"
    for why, names in sorted(reasons.items()):
        yield f"- {why} {', '.join(f'`{name}`' for name in sorted(names))}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join([*page(suite()), *suites_page.lines()]) + "\n")
