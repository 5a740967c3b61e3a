"""Which messages a consumer wants: expressions over their properties."""
