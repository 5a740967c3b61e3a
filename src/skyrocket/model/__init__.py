"""Domain nouns; this layer imports nothing else of the system."""
