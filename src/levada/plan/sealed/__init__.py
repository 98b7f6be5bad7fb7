"""The sealed plan: what workers read. Imports the model alone: operators load no planner."""
