"""The border between rows with event times and report rows, and what decides that a report
is due.
"""
