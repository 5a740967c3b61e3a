"""`skyrocket mqadmin` against a cluster in the test's own process."""
