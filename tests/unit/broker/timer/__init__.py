"""The timer, with a clock that stands still unless it is moved."""
