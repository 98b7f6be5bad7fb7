"""The engine of a soak, a process of its own that is killed and started again.

    python engine.py ROOT MASTER once|on

It runs the queries that stand in ROOT/queries at each moment, on the checkpoint and into the folder
that are always the same; ``once`` reads what is left and ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink, hold_claim
from levada.engine.engine import Engine

ROUND = 0.3  # s between two looks at the queries


def follow(engine: Engine, folder: Path) -> None:
    """Registers and unregisters what has come and gone."""
    wanted = {path.stem: path for path in folder.glob("*.rq")}
    for name in set(engine.queries()) - wanted.keys():
        engine.unregister(name)
    for name in sorted(wanted.keys() - set(engine.queries())):
        engine.register(wanted[name].read_text(), name=name)


def main(root: Path, master: str, once: bool) -> None:
    sink = FileSink(root / "out", Format.NDJSON)
    with Engine(master=master, checkpoint=root / "ck", letters=root / "out", sink=sink,
                epoch="200ms", keep_results=False, partitions=2) as engine:  # fmt: skip
        for name, (path, options) in json.loads((root / "streams.json").read_text()).items():
            engine.stream(name, path, **options)
        engine.static(str(root / "rooms.nt"), graph="http://e/g", reload=True)
        follow(engine, root / "queries")
        with hold_claim(root / "out", engine._open().facts.id, overwrite=False):
            engine.start(once=once)
            while not engine.await_end(ROUND):
                follow(engine, root / "queries")
            (root / "account.json").write_text(
                json.dumps(
                    {
                        n: [r.elements, r.late, r.dead_letters, r.deleted_files]
                        for n, r in engine._records().items()
                    }
                )
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "once")
