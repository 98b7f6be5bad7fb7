"""Static data in tasks: read by pattern, gathered by the hash of whole rows."""
