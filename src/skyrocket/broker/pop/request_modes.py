"""Whether a group receives a topic by pull or by pop, as an operator decided; kept in `messageRequestMode.json`."""

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import RequestMode, RequestModes
from skyrocket.store.config_file import ConfigFile


class RequestModeTable(SavedTable[RequestModes]):
    """Topic → group → mode."""

    def __init__(self, file: ConfigFile[RequestModes], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._content = RequestModes()

    def content(self) -> RequestModes:
        modes = {topic: dict(groups) for topic, groups in self._content.modes.items()}
        return RequestModes(modes, self._content.unknown)

    def _take(self, content: RequestModes) -> None:
        self._content = content

    def find(self, topic: str, group: str) -> RequestMode | None:
        """What was decided."""
        return self._content.modes.get(topic, {}).get(group)

    def set(self, mode: RequestMode) -> None:
        """Set how a group receives a topic."""
        self._content.modes.setdefault(mode.topic, {})[mode.group] = mode
        self.dirty = True
