"""The tests, by what they need: see CONTRIBUTING.md."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""Of the repository."""
