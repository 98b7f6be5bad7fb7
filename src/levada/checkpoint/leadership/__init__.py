"""Decides which driver may commit: takeovers, heartbeats, rollback, and files that no manifest
names.
"""
