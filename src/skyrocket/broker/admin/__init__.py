"""What operators change: topics, groups, settings, files."""
