"""What a running broker counts and measures: items over a minute, an hour and a day; rates; lag; runtime info."""
