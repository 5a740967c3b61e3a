"""JSON endpoints, a file per family; `families` lists them all, `openapi` describes them."""
