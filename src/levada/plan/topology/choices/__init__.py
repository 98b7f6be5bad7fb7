"""What has been chosen for queries that come, and by which measures."""
