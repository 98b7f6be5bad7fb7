"""Limits sharing to queries of nearby regions."""
