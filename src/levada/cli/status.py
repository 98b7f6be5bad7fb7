"""``levada status``: what a checkpoint's queries have given and what they wait for; also while an
engine runs on it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from levada.engine.status import QueryStatus, Status, read_status
from levada.engine.summary import instant, overtaken, table
from levada.model.time import MAX, MIN


def status(checkpoint: Path, *, as_json: bool) -> None:
    """Prints the status of a checkpoint, as tables or as JSON."""
    found = read_status(checkpoint)
    if as_json:
        print(json.dumps(tell(found), indent=2, ensure_ascii=False))
    else:
        Console().print(show(found))


def tell(status: Status) -> dict[str, object]:
    """The status as JSON-able values; a watermark is ms, null before any element, "end" at last."""
    streams = {
        name: {
            "watermark": _time(s.watermark),
            "elements": s.elements,
            "triples": s.triples,
            "late": s.late,
            "dead": s.dead,
            "overtaken": s.overtaken,
        }
        for name, s in status.streams.items()
    }
    queries = [asdict(q) | {"watermark": _time(q.watermark)} for q in status.queries]
    return {"epoch": status.epoch, "ended": status.ended, "streams": streams, "queries": queries}


def _time(ms: int) -> int | str | None:
    return None if ms <= MIN else "end" if ms >= MAX else ms


def show(status: Status) -> RenderableType:
    """The status for people: a table of streams, one of queries, and the patterns of each query."""
    end = ", ended" if status.ended else ""
    streams = [
        (
            name,
            f"{s.elements:,}",
            f"{s.triples:,}",
            f"{s.late:,}",
            f"{s.dead:,}",
            instant(s.watermark),
        )
        for name, s in status.streams.items()
    ]
    queries = [(q.name, f"{q.results:,}", instant(q.watermark), _next(q)) for q in status.queries]
    parts: list[RenderableType] = [
        Text(f"after epoch {status.epoch:,}{end}"),
        table(("stream", "elements", "triples", "late", "dead", "watermark"), streams),
        *overtaken({name: s.overtaken for name, s in status.streams.items()}),
        table(("query", "results", "watermark", "next report"), queries),
    ]
    for q in status.queries:
        if q.patterns:
            rows = [
                (p.text, p.stream, "not counted" if p.matched is None else f"{p.matched:,}")
                for p in q.patterns
            ]
            parts.append(table((f"patterns of {q.name}", "stream", "matched"), rows))
        if q.why:
            parts.append(Text(f"{q.name}: {q.why}"))
    return Group(*parts)


def _next(q: QueryStatus) -> str:
    if q.watermark >= MAX:
        return "-"
    held = f", held back by {q.holds_back}" if q.holds_back else ""
    return (instant(q.next_report) if q.next_report is not None else "at the next change") + held
