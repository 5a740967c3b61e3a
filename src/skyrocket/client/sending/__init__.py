"""How one message leaves: encoding, choice of queue, attempts. Producers, traces and retries of consumers use it."""
