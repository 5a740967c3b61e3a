"""Queues and index from the log alone, byte for byte as the broker makes them; `jobs/rebuild` is the job.

rules, claims, keys     what the broker's dispatch makes of records, as columns
split                   one split of the log: what a task does
queues, index_file      entries → files
publish                 staged files take the place of the old ones
"""
