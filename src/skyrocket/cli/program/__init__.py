"""What commands are made of: options that several share, the cluster they talk to, settings, failures and signals."""
