"""Statistics of streams before their rows are joined."""
