"""Results as users read them, written by tasks."""
