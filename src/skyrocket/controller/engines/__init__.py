"""Where controllers keep their decisions, and by what they agree who of them leads: ZooKeeper, etcd, or a file."""
