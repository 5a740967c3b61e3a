"""The name server: who serves which topic. Nothing about brokers is kept on disk; only KV values are.

route_table   the tables and every change of them     route_view   what one requester sees of a topic
kv_config     values by namespace and key             settings     settings that may change while it runs
processors    a method per request                    name_server  builds, runs and stops all of it
min_broker    which brokers hear of a new smallest id
known_registrations  what a broker repeats is not read again
"""
