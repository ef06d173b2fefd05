"""Benchmarks: plain scripts that print Markdown tables; ``python -m benchmarks`` runs the main set.

Every speed is a ratio against a reference that ran in the same process, in turns with it, and of
every time the best of several is taken. docs/benchmarks and docs/defaults.md keep the tables.
"""
