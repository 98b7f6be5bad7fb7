"""``levada machine``: machine files, looked at."""
