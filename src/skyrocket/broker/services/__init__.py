"""What a broker does by itself, without being asked."""
