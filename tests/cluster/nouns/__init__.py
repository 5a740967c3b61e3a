"""`skyrocket NOUN VERB` against a cluster in the test's own process."""
