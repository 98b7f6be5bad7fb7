"""Statistics of streams for the planning of joins."""
