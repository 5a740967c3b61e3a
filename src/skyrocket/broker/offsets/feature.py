"""Offsets: how far groups have come, what operators do to that, and the saving of the broker's tables."""

from collections.abc import Iterator
from functools import partial

from skyrocket.broker.core.feature import Copied, Feature, Follow, GivenBack
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.offsets.commits_apart import CommitsApart
from skyrocket.broker.offsets.consumer_progress import OffsetProcessor
from skyrocket.broker.offsets.reset import OffsetAdminProcessor
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable as CopiedOffsets
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.offsets import GetAllConsumerOffset
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve


class OffsetsFeature(Feature):
    """Commits, queries, resets."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._offsets = parts.tables.offsets
        self._apart = CommitsApart(parts.broker_set)
        self._has_acted = False
        parts.special.on_change(self._acts_or_stops)
        self._progress = OffsetProcessor(parts.store, parts.tables, self._apart)
        self._admin = OffsetAdminProcessor(parts.store, parts.tables, parts.identity, parts.slices)

    def handlers(self) -> Handlers:
        return (*self._progress.handlers(), *self._admin.handlers(), serve(GetAllConsumerOffset, self.copy))

    def copy(self, _: Peer, __: GetAllConsumerOffset, ___: Body) -> CopiedOffsets:
        """All offsets, for a slave."""
        content = self._offsets.content()
        return CopiedOffsets(content.offsets, content.data_version, content.topics_of_group)

    def copied(self) -> tuple[Copied, ...]:
        return (Copied(GetAllConsumerOffset(), self._take, is_needed=True),)

    def _acts_or_stops(self, acts: bool) -> None:
        self._has_acted = self._has_acted or not acts

    def _take(self, body: bytes) -> None:
        table = ConsumerOffsetTable.decode(body)
        if self._has_acted:
            self._has_acted = False
            self._apart.note_all(self._offsets.content().offsets)
        newer = self._apart.keep_newer(table.offsets)
        self._offsets.take_over(table.offsets, table.data_version)
        for (group, topic, queue_id), offset in newer.items():
            self._offsets.commit(group, topic, queue_id, offset)

    def given_back(self) -> Iterator[GivenBack]:
        for queue, request in self._apart.requests():
            yield GivenBack(request, partial(self._apart.told, queue))

    def taken_back(self) -> tuple[Copied, ...]:
        return (Copied(GetAllConsumerOffset(), self._take_back),)

    def _take_back(self, body: bytes) -> None:
        """Consumers went on at a slave: its table counts where it is newer, and else the larger offset.

        # RocketMQ: an older table is passed over. Versions are raised after many commits: that of a busy master is
        # ahead of what its slave makes of the copy, and all that was consumed there would be delivered again.
        """
        table, own = ConsumerOffsetTable.decode(body), self._offsets.data_version
        theirs = table.data_version or DataVersion()
        if theirs > own:
            self._offsets.take_over(table.offsets, theirs)
        else:
            self._offsets.take_larger(table.offsets)

    def services(self) -> tuple[Work, ...]:
        return (self._parts.persistence.run,)

    def follows(self) -> tuple[Follow, ...]:
        return (Follow(self._interval_changed, ("flushConsumerOffsetInterval",)),)

    def _interval_changed(self) -> None:
        interval_ms = self._parts.settings.broker.flush_offsets_interval_ms
        self._parts.persistence.offset_interval_seconds = interval_ms / 1000

    async def open(self) -> None:
        self._offsets.load()
