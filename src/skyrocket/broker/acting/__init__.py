"""A slave that acts as master while its master is gone: when it does, and where its messages go."""
