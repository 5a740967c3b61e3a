"""PULL_MESSAGE and the pulls that wait."""
