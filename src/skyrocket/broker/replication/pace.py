"""How fast a number grows, looked at once a second."""


class Pace:
    """Bytes of the last second."""

    def __init__(self) -> None:
        self.per_second = 0
        self._seen = 0

    def look(self, total: int) -> None:
        """The number is this now."""
        self.per_second, self._seen = max(total - self._seen, 0), total
