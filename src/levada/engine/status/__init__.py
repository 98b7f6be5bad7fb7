"""The status, progress and summary of an engine."""
