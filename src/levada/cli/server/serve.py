"""``levada serve``: an engine in this process and the server in another; or only a server, over any
checkpoint.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from levada.checkpoint.object_store.store_url import Address
from levada.cli.app.app_file import STDOUT, App
from levada.cli.errors import warn
from levada.cli.run import Mode, run_with
from levada.core.distribution import install_command
from levada.core.frozen import frozen
from levada.core.query_limits import SERVED
from levada.errors import UsageError
from levada.server.security.log_budget import LogBudget

if TYPE_CHECKING:
    from levada.server.settings import Settings

LOG_SIZE, LOG_RATE = 24_000, 5.0  # bytes of warnings of a category at once, and a second
NEEDED = ("starlette", "uvicorn", "httptools", "websockets")


@frozen
class Wish:
    """The options of the server. ``keep``: how long results stay. ``accept_changes``: as in
    ``Mode``. ``origins``: as in ``Settings``.
    """

    listen: str
    tokens: Path | None
    keep: str
    overwrite: bool = False
    progress: bool | None = None
    accept_changes: bool = False
    origins: tuple[str, ...] = ()


def serve_only(
    checkpoint: Path,
    listen: str,
    tokens: Path | None,
    *,
    origins: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> None:
    """Serves a checkpoint until a signal arrives. ``origins``: as in ``Settings``. ``beside``:
    options that this mode does not have. Raises ``UsageError``, ``CheckpointError``.
    """
    if beside:
        raise UsageError(
            f"--read-only serves what is there, without an engine: {', '.join(beside)} says "
            "nothing to it.",
            hint="Say --listen and --tokens alone, or leave --read-only out.",
        )
    tokens = None if tokens is None else tokens.absolute()
    settings = replace(_settings(checkpoint.absolute(), listen, tokens), read_only=True)
    settings = replace(settings, origins=tuple(origins))
    # imported here: they take half a second
    from levada.core.checkpoint_files import facts_of
    from levada.server.run_server import bind_socket, serve, shown_address

    facts_of(checkpoint)
    settings.check()
    made = bind_socket(settings.host, settings.port)
    _say(f"{checkpoint} is served at {shown_address(made)}, read-only.")
    serve(settings, made)


def serve(app: App, wish: Wish) -> int:
    """Runs an application and a server; returns the exit code. Raises ``UsageError``."""
    if app.options.checkpoint is None:
        raise UsageError(
            "The server and the engine meet in a checkpoint.", hint="Say --checkpoint DIR."
        )
    if Address.parse(app.options.checkpoint) is not None:
        raise UsageError(
            "levada serve keeps what clients ask and push in the checkpoint's folder, and "
            f"{app.options.checkpoint} is on an object store.",
            hint="Say --checkpoint DIR.",
        )
    settings = _settings(Path(app.options.checkpoint), wish.listen, wish.tokens)
    settings = replace(settings, max_future=app.options.max_future, origins=wish.origins)
    settings.check()
    app.check_output()
    from levada.checkpoint.result_index import Keep
    from levada.cli.app.run_app import run_app
    from levada.language.warnings.warning import QuerySlip
    from levada.server.run_server import ServerSupervisor, bind_socket, shown_address

    Keep.parse(wish.keep)
    limits = ",".join(filter(None, (SERVED, app.options.limits)))
    app = replace(app, options=replace(app.options, limits=limits))
    if app.options.out != STDOUT:
        settings = replace(settings, letters=Path(app.options.out))
    made = bind_socket(settings.host, settings.port)
    _say(f"{settings.root} is served at {shown_address(made)}.")
    warnings.showwarning = BoundedWarnings(time.monotonic)
    warnings.simplefilter("always", QuerySlip)  # Python would keep each text that was shown
    published = app.options.out != STDOUT
    mode = Mode(
        overwrite=wish.overwrite, progress=wish.progress, keep=wish.keep, published=published,
        endless=True, accept_changes=wish.accept_changes,
    )  # fmt: skip
    with ServerSupervisor(settings, made, _say).running():
        return run_with(run_app, app, mode).exit_code


class BoundedWarnings:
    """``warn`` with a budget for each category, so that warnings caused by clients are bounded and
    hide no others. ``clock`` is in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._budgets: dict[type[Warning], LogBudget] = defaultdict(
            lambda: LogBudget(LOG_SIZE, clock, LOG_RATE)
        )

    def __call__(
        self, message: Warning | str, category: type[Warning], *where: object, **more: object
    ) -> None:
        """Writes a warning if the budget allows it."""
        if sentence := self._budgets[category].admit(str(message)):
            warn(sentence, category)


def _settings(checkpoint: Path, listen: str, tokens: Path | None) -> Settings:
    """Returns the settings of the server. Raises ``UsageError`` if its libraries are not
    installed.
    """
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        raise UsageError(
            f"levada serve needs {', '.join(absent)}, which {_is(absent)} not installed.",
            hint=install_command("server"),
        )
    from levada.server.settings import Settings, parse_listen

    host, port = parse_listen(listen)
    return Settings(checkpoint, host, port, tokens=tokens)


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _say(sentence: str) -> None:
    print(f"levada: {sentence}", file=sys.stderr, flush=True)
