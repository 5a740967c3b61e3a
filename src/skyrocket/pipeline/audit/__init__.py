"""Is everything that the log says in the queues and in the index, and the other way round?

The log is the truth: queues and index can be rebuilt from it (`jobs/rebuild`). So every check is a comparison with the
log, in both directions, done by tasks over parts of the files; `jobs/audit` puts the answers together.
"""
