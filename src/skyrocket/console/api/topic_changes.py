"""What is done with a topic beside its settings: nobody reads it for a while, and copies of it."""

from dataclasses import dataclass

from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.topics import differences_of
from skyrocket.console.telling.counts import brokers
from skyrocket.model.words import said

family = Family("Topics")


@dataclass(frozen=True, slots=True)
class TopicReadingWanted:
    """Whether anybody may read a topic."""

    allowed: bool


@family.post("/api/topics/{topic}/reading")
async def topic_reading(call: Call, wanted: TopicReadingWanted) -> Done:
    """Take the right to read off a topic at all its brokers, or give it back: every group waits meanwhile."""
    name = call.path["topic"]
    changes = await call.admin.reading_changes(name, allowed=wanted.allowed)
    call.before = {f"{each.broker} {each.field}": each.before for each in differences_of(changes)}
    await call.admin.apply_topic_changes(changes)
    if wanted.allowed:
        says = said("topic {name} is read again: changed on {brokers}", name=name, brokers=brokers(changes))
    else:
        says = said("topic {name} is not read any more: changed on {brokers}", name=name, brokers=brokers(changes))
    return Done(
        says,
        {f"{each.broker} {each.field}": each.after for each in differences_of(changes)},
    )


@dataclass(frozen=True, slots=True)
class NewNameWanted:
    """The name of a topic that is not there yet."""

    target: str


@family.post("/api/topics/{topic}/settings-copy")
async def copy_settings(call: Call, wanted: NewNameWanted) -> Done:
    """Create a topic with the settings of this one, on the same brokers; without its messages."""
    changes = await call.admin.copied_topic(call.path["topic"], wanted.target)
    await call.admin.apply_topic_changes(changes)
    await call.admin.check_attributes_kept(changes)
    return Done(
        said(
            "topic {target} was created on {names} with the settings of {topic}",
            target=wanted.target,
            names=", ".join(change.place.broker_name for change in changes),
            topic=call.path["topic"],
        )
    )
