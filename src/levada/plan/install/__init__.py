"""Physical operators -> shapes and members: names become slots, constants become parameters."""
