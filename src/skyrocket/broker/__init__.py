"""The broker: takes messages in, keeps them, gives them out."""
