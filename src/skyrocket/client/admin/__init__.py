"""What operators do: topics, groups, offsets, queries."""
