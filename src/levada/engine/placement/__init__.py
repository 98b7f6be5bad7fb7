"""Applies a placement of tasks to an engine."""
