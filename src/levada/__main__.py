"""``levada`` and ``python -m levada``: the command line, whose modules take half a second."""

import sys

INTERRUPTED = 130  # as shells say it of what SIGINT ended


def main() -> int:
    """Runs the command line; returns the exit code."""
    try:
        from levada.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("levada: interrupted.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
