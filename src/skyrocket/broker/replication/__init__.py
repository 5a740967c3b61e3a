"""A master and its slaves: the same log, byte for byte, on several machines.

    master                                                    slave
    log ─▶ MasterStream ─▶ ha_server ══ HA port ══ ha_client ─▶ SlaveStream ─▶ log ─▶ its own queues and index
              ▲ reports ─▶ Replicas ─▶ senders that wait            metadata ◀── topics, groups, offsets (remoting)

`MasterStream` and `SlaveStream` are state machines: bytes and the time go in, bytes come out, nothing waits. The same
two run between sockets and in the simulator (`skyrocket.testing.simulation`). What they promise:

- A slave appends only what begins where its log ends, so that its log is always a first part of its master's.
- A slave reports only what its log holds (with SYNC_FLUSH: what its disk holds).
- A master counts a report only from a slave whose log it has itself fed since the connection began.
- Neither side ever cuts a log. A slave that is ahead of its master is refused, and a person decides which log is right.
"""
