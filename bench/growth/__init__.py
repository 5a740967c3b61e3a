"""What becomes of rate and memory when there is more of everything: topics, connections, messages that lie there."""
