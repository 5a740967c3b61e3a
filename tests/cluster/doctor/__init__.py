"""The doctor in a cluster of the test's own process."""
