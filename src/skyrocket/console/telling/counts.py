"""Numbers of things within sentences, in every language of the pages."""

from collections.abc import Sized

from skyrocket.model.words import Said, said_of


def brokers(places: Sized) -> Said:
    """`1 broker`, `2 brokers`."""
    return said_of(len(places), "{n:,} broker", "{n:,} brokers")
