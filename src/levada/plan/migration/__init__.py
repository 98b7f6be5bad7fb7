"""Moves running queries to a better join order."""
