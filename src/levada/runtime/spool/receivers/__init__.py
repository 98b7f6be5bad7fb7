"""What listens to feeds: each to one kind, the only place that imports its library."""
