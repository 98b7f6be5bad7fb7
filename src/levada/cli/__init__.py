"""The command line: commands, app files, the shell and the demo."""
