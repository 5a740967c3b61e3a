"""How fast is the store? `python -m bench.store`; docs/performance.md says what is measured and why as ratios."""
