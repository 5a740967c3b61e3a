"""`topics.json`, and beside it a journal of the topics that the file does not have yet.

A first message creates its topic and is answered at once, while the file is written a moment later, since all topics
of a broker are a lot to write. Who is killed in between would come back with the message and without its topic.

    topic created ─▶ a line in topics.journal ─▶ the message is answered ─▶ topics.json is saved ─▶ the journal is empty

Each line has the table's version, so a line that the file already contains is passed over, even if its topic was
deleted since. The lines are not forced to disk: like the messages of an asynchronous flush they survive the process.
"""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from skyrocket.errors import DataError
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import TOPICS, Topics
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.config_file import ConfigDisk, ConfigFile

_logger = logging.getLogger(__name__)

_JOURNAL: Final = "topics.journal"


class TopicFile(ConfigFile[Topics]):
    """Loads the file with what the journal adds; a save makes the journal superfluous."""

    def __init__(self, disk: ConfigDisk, path: str) -> None:
        super().__init__(disk, path, TOPICS.decode, partial(TOPICS.encode, dialect=Dialect.V5_4))
        self.journal_path = os.path.join(os.path.dirname(path), _JOURNAL)
        self._lock = threading.Lock()  # a save runs in another thread than `note`
        self._noted = 0  # counter of the last line

    def note(self, version: DataVersion, configs: Sequence[TopicConfig]) -> None:
        """Write down topics that are new or changed; `version` is the table's with them."""
        line = TOPICS.encode(Topics(version, {config.name: config for config in configs}), Dialect.COMPACT)
        try:
            with self._lock, open(self.journal_path, "ab") as journal:
                journal.write(line + b"\n")
                self._noted = version.counter
        except OSError as error:
            _logger.error("a new topic could not be noted path=%s reason=%s", self.journal_path, error)

    def load(self) -> Topics | None:
        content = super().load()
        for news in self._journal_lines():
            known = content or Topics()
            if _is_later(news.data_version, known.data_version):
                merged: Mapping[str, TopicConfig] = {**known.topics, **news.topics}
                content = replace(known, data_version=news.data_version, topics=dict(merged))
                self._noted = news.data_version.counter
        return content

    def save(self, content: Topics) -> None:
        super().save(content)
        with self._lock:
            if self._noted <= content.data_version.counter and os.path.isfile(self.journal_path):  # noqa: PTH113
                os.truncate(self.journal_path, 0)

    def _journal_lines(self) -> list[Topics]:
        try:
            with open(self.journal_path, "rb") as journal:
                lines = journal.read().split(b"\n")
        except FileNotFoundError:
            return []
        found = []
        for line in filter(None, lines):
            try:
                found.append(TOPICS.decode(line))
            except DataError as error:  # the last line of a machine that lost power
                _logger.warning("a line of the journal is damaged path=%s reason=%s", self.journal_path, error)
        return found


def _is_later(one: DataVersion, other: DataVersion) -> bool:
    return (one.state_version, one.counter) > (other.state_version, other.counter)
