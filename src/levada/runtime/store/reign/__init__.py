"""Who may commit: takeovers, the heartbeat of the engine at work, and those that wait for it."""
