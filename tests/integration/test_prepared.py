"""What several threads decode: nobody finds out at the same time as another what a struct has."""

import subprocess
import sys

LOOK = """
import importlib, msgspec
made, decoder = set(), msgspec.json.Decoder
msgspec.json.Decoder = lambda kind, *said: (made.add(kind), decoder(kind, *said))[1]
from levada.engine.status import result_archive, status
from levada.engine import suspended_queries
print(*sorted({kind.__name__ for kind in made if isinstance(kind, type)}))
"""
READ_BY_MANY = {
    "Answer", "CrashCount", "Delivered", "Entry", "EpochIntent", "Inventory", "Ledger", "Losses",
    "Manifest", "Presence", "Heartbeat", "Request", "Suspension", "Takeover", "Waiting", "_Head",
}  # fmt: skip


def test_structs_of_files_that_servers_read_are_prepared() -> None:
    """A server died of it when its first requests came: it was in the middle of its first look."""
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) >= READ_BY_MANY
