"""What a task holds of its own, where that is bounded."""
