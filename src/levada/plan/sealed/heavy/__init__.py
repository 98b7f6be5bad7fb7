"""Keys with more work than a partition has time for: where their work may be divided."""
