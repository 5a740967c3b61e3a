"""The broker at its name servers."""
