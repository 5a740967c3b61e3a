"""mqadmin's names, run by RocketMQ's tool and by ours against the same server: commands, scenes, and what is equal."""
