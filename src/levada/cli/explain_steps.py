"""``levada explain --steps``: the effect of the optimizer's rules on a query, one after the other.

The text begins with the algebra. Each rule follows with its time and, if it changed the algebra,
the result. The input of a rule is the last algebra above it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence

from levada.plan.logical.print_logical import show
from levada.plan.optimizer.pipeline import Step, trace_rules


def explain_steps(optimize: Callable[[], object], *, as_json: bool) -> str:
    """Runs ``optimize`` and returns the steps of all optimizations in it, as text or as JSON."""
    with trace_rules(time.perf_counter) as steps:
        optimize()
    if as_json:
        return json.dumps([_record(step) for step in steps], indent=2, ensure_ascii=False)
    return "\n".join(_lines(steps))


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    last: object = None
    for step in steps:
        if step.before is not last:
            yield show(step.before)
        yield f"{step.rule}  {1000 * step.seconds:.2f} ms"
        if step.after is not step.before:
            yield show(step.after)
        last = step.after


def _record(step: Step) -> dict[str, object]:
    """Returns a step as JSON-able values; the texts are absent if the rule changed nothing."""
    record: dict[str, object] = {"rule": step.rule, "ms": round(1000 * step.seconds, 3)}
    if step.after is not step.before:
        record |= {"before": show(step.before), "after": show(step.after)}
    return record
