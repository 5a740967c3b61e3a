"""Is it as fast as it was? Costs beside a floor of the same moment, and a file that remembers them."""
