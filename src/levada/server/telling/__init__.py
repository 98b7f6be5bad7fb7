"""What the page shows beside status and results: the topology, late elements and dead letters."""
