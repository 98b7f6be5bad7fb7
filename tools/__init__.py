"""Tools for people who work on Levada."""
