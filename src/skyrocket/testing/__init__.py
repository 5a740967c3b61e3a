"""Stand-ins for the outside world: a clock that is set by hand, a disk that fails when told. For tests only."""
