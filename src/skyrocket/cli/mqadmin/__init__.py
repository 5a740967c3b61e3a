"""`skyrocket mqadmin NAME`: RocketMQ's mqadmin, its names, options and tables, without Java; exit codes that tell.

`commands` has the names and options as data, `options` reads a command line, `printing` writes tables, `handlers` finds
the function of a name; the functions stand in a module for each family of names.
"""
