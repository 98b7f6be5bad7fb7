"""A folder laid out as Linux lays /sys out."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def sys_folder(
    root: Path,
    nodes: Mapping[int, str] | None = None,
    *,
    distances: Sequence[str] = (),
    packages: Mapping[int, int] | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """``nodes``: the list of processors of each; ``place``: a line of each, in their order;
    ``packages``: the socket of each processor.
    """
    made = dict(files or {})
    for at, (number, processors) in enumerate((nodes or {}).items()):
        folder = f"devices/system/node/node{number}"
        made[f"{folder}/cpulist"] = f"{processors}\n"
        if distances:
            made[f"{folder}/distance"] = f"{distances[at]}\n"
    for number, package in (packages or {}).items():
        folder = f"devices/system/cpu/cpu{number}"
        made[f"{folder}/topology/physical_package_id"] = f"{package}\n"
        made[f"{folder}/topology/thread_siblings_list"] = f"{number}\n"
        made[f"{folder}/cache/index0/coherency_line_size"] = "128\n"
        made[f"{folder}/cpufreq/cpuinfo_max_freq"] = "2600000\n"
    for path, text in made.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root
