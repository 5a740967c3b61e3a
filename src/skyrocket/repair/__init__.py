"""What an operator does to a store by hand: repair what recovery will not touch, convert what it cannot read."""
