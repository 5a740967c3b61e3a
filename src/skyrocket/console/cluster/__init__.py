"""What is asked of the cluster: each question once for all browsers."""
