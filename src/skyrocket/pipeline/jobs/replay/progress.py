"""How far a replay has come, in a file, so that the same replay run again goes on instead of beginning anew.

The file belongs to one replay: same source, same choice, same target. Another one is refused, since its offsets would
make messages be passed over in silence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skyrocket.errors import ConfigError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.durable_files import digest, replace_file, state_directory


@dataclass
class ReplayProgress:
    """Where a replay goes on in each queue, and how many messages it has sent in all its runs."""

    path: Path
    identity: Mapping[str, str]
    next_offsets: dict[MessageQueue, int] = field(default_factory=dict)
    sent: int = 0
    # Where the round ends that was begun: after a crash it is sent again as it was, since the sink, once it has
    # committed a round, takes nothing more by that name.
    under_way: dict[MessageQueue, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Short, the same in every run of this replay."""
        return digest(self.identity)

    @property
    def round_name(self) -> str:
        """Equal for every attempt to send what comes next, also for one that an earlier release began."""
        offsets = {str(queue).removeprefix("Message"): str(offset) for queue, offset in self.next_offsets.items()}
        return f"{self.name}-{digest(offsets)}"

    def begin(self, ends: Mapping[MessageQueue, int]) -> None:
        """The next round goes up to there."""
        self.under_way = dict(ends)
        self._save()

    def advance(self, sent_up_to: Mapping[MessageQueue, int], count: int) -> None:
        """So many were sent; remember it before anything else is."""
        for queue, offset in sent_up_to.items():
            assert offset >= self.next_offsets.get(queue, 0), (queue, offset)
            self.next_offsets[queue] = offset
        self.sent += count
        self.under_way = {}
        self._save()

    def _save(self) -> None:
        value = {
            "replay": dict(self.identity),
            "sent": self.sent,
            "nextOffsets": _listed(self.next_offsets),
            "underWay": _listed(self.under_way),
        }
        try:
            replace_file(self.path, json.dumps(value, ensure_ascii=False, indent=1).encode())
        except OSError as error:
            raise ConfigError(f"progress cannot be kept in {self.path}: {error}; choose another --progress") from error


def _listed(offsets: Mapping[MessageQueue, int]) -> list[list[Any]]:
    return [[*queue, offset] for queue, offset in sorted(offsets.items())]


def _offsets(listed: list[list[Any]]) -> dict[MessageQueue, int]:
    return {MessageQueue(topic, broker, int(queue)): int(offset) for topic, broker, queue, offset in listed}


def default_path(identity: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """Each replay has its own, below the user's state directory."""
    return state_directory(environment) / "replay" / f"{digest(identity)}.json"


def open_progress(path: Path, identity: Mapping[str, str], *, again: bool = False) -> ReplayProgress:
    """What earlier runs have done; `again` forgets it. Raises ConfigError for the file of another replay."""
    if again or not path.exists():
        return ReplayProgress(path, dict(identity))
    try:
        value = json.loads(path.read_bytes())
        known, under_way = _offsets(value["nextOffsets"]), _offsets(value.get("underWay", []))
        found, sent = value["replay"], int(value["sent"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not the progress of a replay ({error!r}): choose another --progress") from error
    if found != dict(identity):
        differs = sorted(name for name in {*found, *identity} if found.get(name) != identity.get(name))
        raise ConfigError(
            f"{path} belongs to another replay, which differs in {', '.join(differs)}: choose another --progress, or "
            "begin anew with --again"
        )
    return ReplayProgress(path, dict(identity), known, sent, under_way)
