"""Publishes committed results to sinks and readers."""
