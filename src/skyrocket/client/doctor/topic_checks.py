"""Topics: where they are, and whether they can be written and read."""

from collections.abc import Callable, Iterator
from typing import Final

from skyrocket.client.doctor.facts import ClusterFacts
from skyrocket.client.doctor.finding import Finding, error, note, warning
from skyrocket.client.doctor.gathering import is_of_applications
from skyrocket.model.permission import PERM_READ, PERM_WRITE, permission_text
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.model.words import said_of

PERM_BOTH: Final = PERM_READ | PERM_WRITE
_TYPE: Final = "message.type"


def routes(facts: ClusterFacts) -> Iterator[Finding]:
    """What brokers have must be what name servers tell."""
    closed = {broker.place for broker in facts.masters if not broker.setting("brokerPermission", 6) & PERM_WRITE}
    for topic, configs in facts.topics.items():
        route = facts.routes.get(topic)
        if route is None or not is_of_applications(topic):
            continue
        told = {queues.broker_name: queues for queues in route.queues}
        for place, config in configs.items():
            queues = told.get(place.broker_name)
            if queues is None:
                remedy = "wait for the broker's next registration (30 s); if it stays, restart the broker"
                yield error("route-missing", topic, "{place} has it, but name servers do not tell", remedy, place=place)
            elif config.permission & PERM_WRITE and not queues.permission & PERM_WRITE and place not in closed:
                what, remedy = "name servers send no producer to {place}", "`skyrocket broker resume-writes {broker}`"
                yield error("writes-paused", topic, what, remedy, place=place, broker=place.broker_name)


def permissions(facts: ClusterFacts) -> Iterator[Finding]:
    """Who may write and read."""
    producers = {broker.place.broker_name: broker.producers for broker in facts.masters}
    consumed = {each.queue.topic for group in facts.groups.values() for each in group.lags}
    for topic, configs in facts.topics.items():
        if not is_of_applications(topic):
            continue
        for place, config in configs.items():
            shown = permission_text(config.permission)
            if not config.permission & PERM_WRITE and producers.get(place.broker_name):
                remedy = "`skyrocket topic update {where} --perm RW` if it shall be written"
                what = "perm is {shown} at {place}, and producers run"
                yield warning("topic-not-writable", topic, what, remedy, shown=shown, place=place)
            if not config.permission & PERM_READ and topic in consumed:
                remedy = "`skyrocket topic update {where} --perm RW`: messages wait and nobody can read them"
                what = "perm is {shown} at {place}, and groups consume it"
                yield error("topic-not-readable", topic, what, remedy, shown=shown, place=place)


def retry_topics(facts: ClusterFacts) -> Iterator[Finding]:
    """What a group could not consume is written there, and read again."""
    for topic, configs in facts.topics.items():
        if not topic.startswith(RETRY_PREFIX):
            continue
        group = topic.removeprefix(RETRY_PREFIX)
        for place, config in configs.items():
            if config.permission & PERM_BOTH != PERM_BOTH:
                shown = permission_text(config.permission)
                what = "perm of its retry topic is {shown} at {place}: what fails there is not tried again"
                remedy = "`skyrocket topic update {topic} --perm RW`"
                yield error("retry-topic-closed", group, what, remedy, shown=shown, place=place, topic=topic)


def sameness(facts: ClusterFacts) -> Iterator[Finding]:
    """A topic is one thing, on however many brokers."""
    for topic, configs in facts.topics.items():
        if not is_of_applications(topic):
            continue
        if len({config.ordered for config in configs.values()}) > 1:
            at = ", ".join(str(place) for place, config in configs.items() if config.ordered)
            remedy = "`skyrocket topic update {where} --ordered` (or --not-ordered)"
            yield warning("topic-differs", topic, "it is ordered at {at} alone", remedy, at=at)
        types = {config.attributes[_TYPE] for config in configs.values() if _TYPE in config.attributes}
        if len(types) > 1:
            remedy = "`skyrocket topic update {where} --type …`: brokers refuse messages of another type"
            what = "brokers have it with the types {types}"
            yield warning("topic-differs", topic, what, remedy, types=", ".join(sorted(types)))


def queues(facts: ClusterFacts) -> Iterator[Finding]:
    """Numbers that do not fit together."""
    names: dict[str, set[str]] = {}
    for broker in facts.masters:
        names.setdefault(broker.place.cluster, set()).add(broker.place.broker_name)
    for topic, configs in facts.topics.items():
        if not is_of_applications(topic):
            continue
        for place, config in configs.items():
            written = said_of(config.write_queues, "{n:,} write queue", "{n:,} write queues")
            read = said_of(config.read_queues, "{n:,} read queue", "{n:,} read queues")
            if config.write_queues > config.read_queues:
                what = "{written}, but {read} at {place}"
                remedy = "`skyrocket topic update {where} --queues N`: what is in the others is never consumed"
                yield error("queues-differ", topic, what, remedy, written=written, read=read, place=place)
            elif config.write_queues < config.read_queues:
                what = "{read}, but {written} at {place}"
                remedy = "`skyrocket topic update {where} --queues N` once the others are consumed"
                yield warning("queues-differ", topic, what, remedy, read=read, written=written, place=place)
        place, *others = configs
        if not others and len(names[place.cluster]) > 1:
            remedy = "`skyrocket topic create {where}` adds it to the other brokers"
            yield note(
                "topic-on-one-broker", topic, "only {place} has it: it stops when that broker does", remedy, place=place
            )


CHECKS: Final[tuple[Callable[[ClusterFacts], Iterator[Finding]], ...]] = (
    routes,
    permissions,
    retry_topics,
    sameness,
    queues,
)
