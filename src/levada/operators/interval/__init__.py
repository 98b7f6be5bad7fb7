"""Operators on rows with event times, incremental."""
