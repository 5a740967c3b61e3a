"""A tracer for who wants one; nothing of tracing is imported for who does not."""

from typing import TYPE_CHECKING, Final

from skyrocket.client.core.instance import ClientInstance

if TYPE_CHECKING:
    from skyrocket.client.tracing.trace import Tracer

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
PRODUCE: Final = "PRODUCE"
CONSUME: Final = "CONSUME"


def tracer_of(instance: ClientInstance, wanted: bool | str, group: str, role: str) -> "Tracer | None":
    """For a producer or consumer of this client; None when nothing is to be traced."""
    if not wanted:
        return None
    from skyrocket.client.tracing.trace import Tracer
    from skyrocket.client.tracing.trace_dispatcher import TraceDispatcher

    topic = wanted if isinstance(wanted, str) else TRACE_TOPIC
    return Tracer(instance, TraceDispatcher(instance, topic, group, role), group)
