"""Dumps and verifies a store directory offline, read-only, with the formats alone.

Nothing here imports the store: what the store wrote is judged by an independent reading of the same formats.
`store_directory` finds the files, `log_walk` reads the commit log, `verify` compares everything with everything,
`views` shows parts of it; a problem is always a `Finding`.
"""
