"""Commands that talk to an engine that runs: ``ps``, ``add``, ``drop``, ``tail``."""
