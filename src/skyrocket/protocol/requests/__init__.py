"""A type per request and answer header, a file per family; `catalogue` has them all by their codes.

A program imports the families that it speaks: a producer does without the hundred requests of operators.
"""
