"""GROUP BY and DISTINCT: by panes, per report, by changes."""
