"""The timer's files: a log of units, one for each parked message, and a wheel whose slots point to them."""
