"""The machine of each task (KATTS), and the number of replicas of each operator (BriskStream)."""
