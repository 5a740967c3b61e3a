"""The console in front of clusters that live in the test's own process."""
