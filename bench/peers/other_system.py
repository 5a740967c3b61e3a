"""A message system that does not speak RocketMQ's protocol: its own load tool says what it can."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OtherResult:
    """What its tool printed and what the server spent; None where the tool does not tell."""

    name: str
    durability: str  # what an acknowledgement means
    tool: str
    publish_rate: float
    publish_cpu_us: float
    publish_p50_ms: float | None
    publish_p99_ms: float | None
    consume_rate: float | None
    consume_cpu_us: float | None
    idle_mb: float
    loaded_mb: float
    seconds_to_ready: float


class Missing(Exception):
    """The system or its tool is not here and cannot be fetched: a reason to leave it out."""


class ToolFailed(Exception):
    """The load tool did not do what it should; says what it said."""
