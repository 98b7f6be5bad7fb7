"""``python -m levada``: the command line."""

from levada.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
