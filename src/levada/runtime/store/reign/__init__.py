"""Who may commit: takeovers, the pulse of the engine at work, and those that wait for it."""
