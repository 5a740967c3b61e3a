"""Rates and lag over time, and who changed what: one SQLite file of bounded size."""
