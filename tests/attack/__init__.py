"""Attacks on a running server, each bounded, with an honest client beside it that must not notice.

    target     `skyrocket standalone` as a program, with its memory and its HTTP pages
    honest     a producer and a consumer in a process of their own, with what they had to wait
    attackers  raw connections, and floods of bytes over them

    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, 50) as sockets, Flood(sockets, lambda: bytes_of_requests):
            attacked = honest.during(4.0)
    attacked.must_be_served(quiet, "50 connections that never wait")

Short modes run in `make test` on any machine and allow three seconds, or twenty times the quiet figure. Marked `slow`,
the same attacks are longer and allow 200 ms.
"""
