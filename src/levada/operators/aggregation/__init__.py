"""GROUP BY and DISTINCT: by panes, per report, and incrementally."""
