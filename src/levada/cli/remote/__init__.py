"""Commands for a running engine: ``ps``, ``add``, ``drop``, ``tail`` and others."""
