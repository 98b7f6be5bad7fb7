"""What is known of streams before their rows are joined."""
