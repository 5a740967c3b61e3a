"""Jobs over little data, in this process: by pyarrow, with the same tables as on Spark and without its minute of start.

reading     messages as an Arrow table, read by what Spark's tasks read with; how much there is decides the engine
grouping    rows by key, ordered as Spark orders them
lag, dlq, trace, repeats      the steps of the jobs; their reports are made where the jobs on Spark make theirs
"""
