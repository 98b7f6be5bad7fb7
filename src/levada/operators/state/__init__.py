"""State of windows: immutable runs, counters, retractions."""
