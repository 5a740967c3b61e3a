"""So many a second, and as many as of one second at once."""

from skyrocket.clock import Clock


class TokenBucket:
    """Full at the beginning; what is taken beyond its content is a debt that time pays back.

    Of requests that fit into the bucket never more than `per_second × time + burst` are let through. One that is larger
    than the whole bucket waits until it is full, and leaves a debt.
    """

    __slots__ = ("_clock", "_filled_at", "_left", "burst", "per_second")

    def __init__(self, clock: Clock, per_second: float) -> None:
        self._clock = clock
        self.per_second = per_second
        self.burst = max(per_second, 1.0)
        self._left = self.burst
        self._filled_at = clock.monotonic()

    def wait_for(self, amount: float) -> float:
        """Seconds until so much may be taken; 0.0: now."""
        missing = min(amount, self.burst) - self._content()
        return missing / self.per_second if missing > 0 else 0.0

    def take(self, amount: float) -> None:
        """Take it, whatever is left: who may not must be told before."""
        self._left = self._content() - amount

    @property
    def is_full(self) -> bool:
        """Whether nothing was taken lately."""
        return self._content() >= self.burst

    @property
    def rate(self) -> float:
        """How much of the second that is over was used: a number between 0 and the rate, more for who is in debt."""
        return self.burst - self._content()

    def _content(self) -> float:
        now = self._clock.monotonic()
        if now > self._filled_at:
            self._left = min(self._left + (now - self._filled_at) * self.per_second, self.burst)
            self._filled_at = now
        return self._left
