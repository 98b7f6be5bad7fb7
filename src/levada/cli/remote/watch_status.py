"""``levada status --watch``: the status of a checkpoint, redrawn after each epoch."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live

from levada.checkpoint.reader_leases import epochs_there
from levada.cli.app.signals import stopped_by_signals
from levada.cli.status import show
from levada.core.checkpoint_files import facts_of
from levada.engine.status.status import Status, read_status
from levada.engine.status.status_document import status_document
from levada.errors import CheckpointError

LOOK = 0.2  # s


def watch(checkpoint: Path, *, as_json: bool, verbose: bool) -> None:
    """Shows the status until Ctrl-C. A terminal shows tables that are redrawn, other output one
    after the other, and JSON is a line each. It waits for the first epoch. Raises
    ``CheckpointError``.
    """
    facts_of(checkpoint)
    console = Console()
    seen = 0
    live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
    with stopped_by_signals(None) as stopped, live, suppress(FileNotFoundError):
        while not stopped.is_set():  # a run on a temporary checkpoint deletes the folder
            newest = max(epochs_there(checkpoint), default=0)
            if newest > seen and (status := _status(checkpoint)) is not None:
                seen = status.epoch
                if as_json:
                    document = status_document(checkpoint, status, time.time())
                    line = json.dumps(document, ensure_ascii=False)
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
                elif console.is_terminal:
                    live.update(show(status, verbose=verbose), refresh=True)
                else:
                    console.print(show(status, verbose=verbose), soft_wrap=True)
            stopped.wait(LOOK)


def _status(checkpoint: Path) -> Status | None:
    try:
        return read_status(checkpoint)
    except CheckpointError:
        if checkpoint.is_dir():
            raise
        return None
