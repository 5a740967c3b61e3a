"""From the commit log into the lake: what a task does with its split, and how a run is planned.

`jobs/archive` puts these together. No shuffle and no sort: the log is in the order of store times already, so a split
falls apart into one Parquet file per topic and day, written by the task that read it.
"""
