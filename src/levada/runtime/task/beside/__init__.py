"""What goes to partitions beside rows."""
