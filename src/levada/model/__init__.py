"""What both paths speak: terms, event times and windows, frames of columns. Imports nothing of the
stages.
"""
