"""Static data that are kept once: found again, and told."""
