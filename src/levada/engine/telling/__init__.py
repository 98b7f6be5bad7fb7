"""What an engine tells: progress, summary, status, remarks."""
