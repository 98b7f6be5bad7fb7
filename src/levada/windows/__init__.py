"""Event times -> instants at which rows count, and their state: pieces, runs, report times."""
