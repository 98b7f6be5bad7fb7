"""The sealed plan: what workers read. Imports the model alone, so that operators load no
planner.
"""
