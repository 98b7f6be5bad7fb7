"""``levada machine probe --master ..``: a machine file of a cluster's executors.

A place is an executor. The unit of transfer between executors is a blob: ``line`` is the bytes of a
small one, ``latency`` its transfer time (``runtime.spark``).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import warnings
from pathlib import Path

from levada.cli.machine.probe_machine import put
from levada.core.distribution import require_pyspark
from levada.core.machine_file import Machine
from levada.engine.python.executor_choice import check_classic
from levada.errors import UsageError
from levada.placement.hardware.cpu_topology import By
from levada.runtime.executor import executors
from levada.runtime.spark.spark_settings import shares_host

OF_BLOBS = (
    "Places are executors. A line is a small blob, latency what one takes from row to column "
    "through Spark's shuffle; bandwidth is that of large ones."
)
_CLUSTERS = re.compile(r"spark://.+|yarn|k8s://.+|local-cluster\[.+\]")


def probe_cluster(out: Path | None, master: str, *, as_json: bool, by: By | None = None) -> None:
    """Probes the executors, and writes the machine file or prints it. Raises ``LevadaError``."""
    _check(master, by)
    if out is not None and not os.access(out.parent, os.W_OK):
        raise UsageError(f"{out} cannot be written: {out.parent} is no folder to write to.")
    machine, assumed = _probe(master)
    for sentence in assumed:
        warnings.warn(sentence, stacklevel=2)
    put(out, machine, (OF_BLOBS, *assumed), as_json=as_json)


def _check(master: str, by: By | None) -> None:
    """Raises ``UsageError`` for a master whose executors cannot be probed."""
    check_classic(None, master, os.environ)
    require_pyspark(master)
    if by is not None:
        raise UsageError(
            f"--by {by} and --master do not go together: places are the executors of {master}.",
            hint="Leave out one of them.",
        )
    if master == "none" or shares_host(master):
        raise UsageError(
            f"With --master {master} tasks run in one place, so there is nothing between executors "
            "to measure.",
            hint="Give such as spark://host:7077; without --master this machine is probed.",
        )
    if _CLUSTERS.fullmatch(master) is None:
        raise UsageError(
            f"{master} is no master of a cluster.",
            hint="Give such as spark://host:7077, yarn, k8s://https://host or "
            "local-cluster[3,1,1024].",
        )


def _probe(master: str) -> tuple[Machine, tuple[str, ...]]:
    """Returns the executors as places, and a sentence for each value that is not measured."""
    from levada.runtime.spark.network_probe import LOCALITY_WAIT, ping
    from levada.runtime.spark.network_probe_tasks import SMALL_BLOB_BYTES
    from levada.runtime.spark.spark_session import start_session, stop_session

    scratch = Path(tempfile.mkdtemp(prefix="levada-probe-"))
    session = start_session(master, config=LOCALITY_WAIT, scratch=scratch)  # failure keeps its log
    try:
        network = ping(session, expected=executors(master))
    finally:
        stop_session(session)
        shutil.rmtree(scratch, ignore_errors=True)
    machine = Machine(
        f"executors of {master}, {time.strftime('%Y-%m-%d')}",
        network.clock,
        float(SMALL_BLOB_BYTES),
        tuple(f"{member.host}/{member.name}" for member in network.members),
        tuple(member.cores for member in network.members),
        network.latency,
        network.bandwidth.round(-6),
    )
    return machine, network.assumed
