"""The Python client's speed, beside a bare protocol loop and the official clients."""
