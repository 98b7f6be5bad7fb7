"""The right of one driver to commit: takeovers, heartbeats, rollback, and files that no manifest
names.
"""
