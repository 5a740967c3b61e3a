"""The files of a store, read without the store and without a broker; inspector and pipelines stand on it.

`store_files` finds them, `offset_files` reads them, `log_walk` goes through the commit log and on behind damage, and
`queue_files`, `index_files`, `timer_files` and `config_files` read the rest. Nothing here imports the store: what it
wrote is judged by an independent reading of the same formats.
"""
