"""Rows to rows: operators as functions of frames and state, without files and without a JVM."""
