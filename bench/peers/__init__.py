"""Skyrocket beside its peers, on one machine in one run: `python -m bench.peers --help`, `make bench-peers`."""
