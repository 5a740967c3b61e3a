"""What every feature of the broker stands on: its parts, its request classes, the shape of a feature."""
