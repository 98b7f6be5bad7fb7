"""Event times to window instants: intervals, report times, row versions."""
