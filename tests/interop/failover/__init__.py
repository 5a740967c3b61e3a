"""Sets of three brokers under a controller, of one maker or of two, whose masters are killed one after the other."""
