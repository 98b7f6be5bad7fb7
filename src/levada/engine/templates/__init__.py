"""Many similar queries at once: plans one of them, and derives the others from it."""
