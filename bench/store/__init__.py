"""How fast is the store? `python -m bench.store`; docs/internals/performance.md says what is measured and how."""
