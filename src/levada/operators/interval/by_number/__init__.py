"""Joins over count windows by the numbers of their rows (``windows/numbers``)."""
