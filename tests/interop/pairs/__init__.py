"""Sets of a master and a slave, of one maker or of two, for a long time under load."""
