"""Queries that tell the name servers how they are, so that the console shows batch, sink and a link to the query.

    from skyrocket.pipeline import report_queries

    report_queries(spark)

listener   what Spark says of queries          described   whose messages a query reads, and where they go
sending    one thread: seldom, the latest, with a time-out
"""
