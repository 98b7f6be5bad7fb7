"""From what a manifest names to sinks and readers."""
