"""The report of a stage task on the files that its partition needs: those added and removed since
the initial state. It contains all files if the task began without a state of its own (another group
table, a new partition), or if the driver asks for all.

The initial state of a partition follows from the context of the epoch alone. So it is the same for
all attempts, though their new files have other names.
"""

from __future__ import annotations

from levada.checkpoint.epoch_context import TaskOutcome
from levada.operators.state.state_parts import State


def tell(done: TaskOutcome, state: State, file: str | None, *, whole: bool) -> set[str]:
    """Reports the files after an epoch, and returns them. ``file`` lists all others (None: there is
    no state). ``whole``: report all files.
    """
    names = {*state.files(), *([file] if file else [])}
    done.lists_all_files = whole or not state.file
    if done.lists_all_files:
        done.state, done.files = file, sorted(names)
    elif file != state.file:
        before = state.first_files()
        done.state = file
        done.files, done.unneeded_files = sorted(names - before), sorted(before - names)
    return names
