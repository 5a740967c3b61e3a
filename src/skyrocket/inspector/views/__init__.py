"""What an inspection shows: a module per part of the store, each a function that yields views."""
