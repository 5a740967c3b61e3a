"""How far groups have come, and moving them."""
