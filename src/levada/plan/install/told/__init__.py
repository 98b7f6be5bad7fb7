"""What of a condition indexes tell."""
