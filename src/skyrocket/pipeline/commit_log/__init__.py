"""format("rocketmq-commitlog"): the log of a store as a table, read in parallel and without a broker.

settings      the options                     splits   files and bounds → tasks (pure)
log_files     which files a store has         walk     one split → records and damage; is its end being written?
selection     topics, tags, keys, times       reading  one split → Arrow batches
damage        damaged regions as rows         data_source   what Spark sees
"""
