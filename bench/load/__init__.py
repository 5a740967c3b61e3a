"""A lean load generator for any server that speaks RocketMQ's remoting protocol: `python -m bench.load --help`."""
