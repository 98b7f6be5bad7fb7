"""Versions of the plan by what is new in each."""
