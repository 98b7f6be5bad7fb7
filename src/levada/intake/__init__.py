"""Bytes -> rows: lines are parsed, identified and timed, elements found, patterns matched, all
inside the task that reads.
"""
