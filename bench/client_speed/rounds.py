"""Short rounds, best of many: on a busy machine the best round says what the code costs, the others what else ran."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass
class Figure:
    """One way to send or to receive."""

    name: str
    rates: list[float] = field(default_factory=list)  # messages per second, a round each
    cpu_us: list[float] = field(default_factory=list)  # of this process per message

    @property
    def best_rate(self) -> float:
        return max(self.rates, default=0.0)

    @property
    def least_cpu_us(self) -> float:
        return min(self.cpu_us, default=0.0)


async def one_round(figure: Figure, work: Callable[[], Awaitable[int]]) -> int:
    """Do it once; returns how many messages that were."""
    began, cpu = time.perf_counter(), time.process_time()
    count = await work()
    figure.rates.append(count / (time.perf_counter() - began))
    figure.cpu_us.append((time.process_time() - cpu) / count * 1e6)
    return count
