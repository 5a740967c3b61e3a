"""What a broker answers, a file per family of requests."""
