"""What is done with a topic beside its settings: nobody reads it for a while, and copies of it."""

from dataclasses import dataclass

from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.topics import differences_of
from skyrocket.model.words import counted

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
    says = "is read again" if wanted.allowed else "is not read any more"
    return Done(
        f"topic {name} {says}: changed on {counted(len(changes), 'broker')}",
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
    brokers = ", ".join(change.place.broker_name for change in changes)
    return Done(f"topic {wanted.target} was created on {brokers} with the settings of {call.path['topic']}")
