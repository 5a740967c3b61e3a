"""HTTP around the endpoints: who asks, what is refused, how answers and pages leave."""
