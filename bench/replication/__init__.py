"""What a slave costs its master, and how fast it follows: `python -m bench.replication --help`."""
