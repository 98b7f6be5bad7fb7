"""What stands below picks: relaxed joins, and the patterns of which they want terms."""
