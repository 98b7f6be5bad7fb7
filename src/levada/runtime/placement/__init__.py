"""Tasks, and the messages between them (docs/placement.md)."""
