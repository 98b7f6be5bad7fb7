"""What a stage task tells of the files that its partition needs: those that are new and those that
it needs no more, after the state that it began with; all, if it began with no state of its own
(another table of groups, a new partition), or if the driver asks for all.

It follows from the context of the epoch alone what a partition began with: so it is the same for
all attempts, though their new files have other names.
"""

from __future__ import annotations

from levada.checkpoint.epoch_context import TaskOutcome
from levada.operators.state.state_parts import State


def tell(done: TaskOutcome, state: State, file: str | None, *, whole: bool) -> set[str]:
    """Tells of the files after an epoch, of which ``file`` lists all others (None: there is no
    state); what they are. ``whole``: all are asked for.
    """
    names = {*state.files(), *([file] if file else [])}
    done.whole = whole or not state.file
    if done.whole:
        done.state, done.files = file, sorted(names)
    elif file != state.file:
        before = state.first_files()
        done.state = file
        done.files, done.gone = sorted(names - before), sorted(before - names)
    return names
