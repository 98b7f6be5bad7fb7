"""The placement of tasks on executors: from a file, learned, and measured."""
