"""Push and lite pull consumers, and what they share: queues in hand, pulling, offsets."""
