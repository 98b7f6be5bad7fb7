"""Limits of sharing to queries of nearby regions."""
