"""Speed of the pipelines, as ratios to the least that must be done with the same bytes: `python -m bench.pipeline`."""
