"""Speed and memory, measured by hand: `make bench`. Not part of the tests; these only see that it runs."""
