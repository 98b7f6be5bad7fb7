"""Events whose data are statements with times, in the syntax of a stream of Levada. Each triple of
a CONSTRUCT is a line of N-Triples with the report's time before its dot.

    id: 4000
    event: report
    data: <http://e/a> <http://e/b> <http://e/c> 4000 .

So another engine can read the results as a stream (``sse+http://``, ``format=nt,element=line``).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.types import Send

from levada.server.live.sse import EventStream

_REPORT = b"\nevent: report\n"


class StatementStream(EventStream):
    """An event stream that sends statements."""

    async def _send(self, send: Send, blocks: Sequence[bytes]) -> None:
        await super()._send(send, list(map(statements, blocks)))


def statements(block: bytes) -> bytes:
    r"""Converts an event of a CONSTRUCT into statements. Returns other blocks unchanged.

    >>> statements(b'id: 10\nevent: report\ndata: {"report": 10, "graph": "<a> <b> <c> .\\n"}\n\n')
    b'id: 10\nevent: report\ndata: <a> <b> <c> 10 .\n\n'
    """
    head, marker, rest = block.partition(_REPORT)
    if not marker:
        return block
    lines = []
    for line in rest.split(b"\n"):
        if line:
            said = msgspec.json.decode(line.removeprefix(b"data: "))
            time = said["report"]
            lines += [f"data: {t[:-1]}{time} .\n" for t in said["graph"].split("\n") if t]
    return head + marker + "".join(lines).encode() + b"\n"
