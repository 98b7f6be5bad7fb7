"""What tasks there are, and what they send each other (docs/placement.md)."""
