"""Bodies as values: what a handler's parameter or a send asks for, turned from and into bytes (codecs.py)."""
