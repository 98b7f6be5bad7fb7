"""Status, progress and summary of an engine."""
