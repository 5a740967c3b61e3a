"""What a broker remembers: topics, groups, offsets, who is connected, who holds which queue.

Synchronous and without sockets. The event loop is the one owner: nothing here is locked.

    names, attributes, system_topics, remarks         the rules, as pure functions, and their words
    saved_table                                       a table with a data version and a file under `config/`
    topics, subscription_groups, consumer_offsets     the three that are saved
    connected_clients, connected_producers, connected_consumers, consumer_group, queue_locks
                                                      forgotten at a restart
"""
