"""What GROUP BYs over the same rows have in common."""
