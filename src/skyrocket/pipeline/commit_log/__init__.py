"""format("rocketmq-commitlog"): the log of a store as a table, read in parallel and without a broker.

settings      the options                     splits   files and bounds → tasks (pure)
log_files     which files a store has         walk     one split → records and damage
selection     topics, tags, keys, times       tail     is the end of the newest file torn, or being written?
damage        damaged regions as rows         reading  one split → Arrow batches
data_source   what Spark sees
"""
