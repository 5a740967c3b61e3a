"""How long a set of three has no writable master after kill -9 of the one it had."""
