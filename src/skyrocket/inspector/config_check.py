"""The files under `config/`: readable, and in agreement with the queues."""

from skyrocket.format.config_files import CONFIG_FILES, DelayOffsets, Topics
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.model.topic import DLQ_PREFIX, LMQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, is_system_topic
from skyrocket.offline.config_files import decode_config, load_config
from skyrocket.offline.queue_files import SimpleQueue, open_queue
from skyrocket.offline.store_files import StoreFiles


class ConfigCheck:
    """Compares the configuration with the queues on disk."""

    def __init__(self, store: StoreFiles, findings: Findings, log_start: int) -> None:
        self._store = store
        self._findings = findings
        self._log_start = log_start
        self._opened: dict[QueueName, SimpleQueue | None] = {}

    def check(self) -> None:
        """Report unreadable files, offsets beside their queues and topics that nobody lists."""
        for name in CONFIG_FILES:
            for path, severity in (
                (self._store.config / name, Severity.ERROR),
                (self._store.config / f"{name}.bak", Severity.WARNING),
            ):
                _, problem = decode_config(path, name)
                if problem is not None:
                    self._findings.add(FindingKind.CONFIG_UNREADABLE, severity, self._store.name_of(path), problem)
        self._check_topics()
        self._check_consumer_offsets()
        self._check_delay_offsets()

    def _check_topics(self) -> None:
        known: Topics | None = load_config(self._store, "topics.json")
        if known is None:
            return
        for name in [*self._store.queues, *self._store.batch_queues]:
            listed = known.topics.get(name.topic)
            if listed is None:
                if not is_built_in(name.topic):
                    what = f"{name} has messages, but the topic is not listed"
                    self._add(FindingKind.TOPIC_UNLISTED, Severity.WARNING, "topics.json", what)
                continue
            if not is_built_in(name.topic) and name.queue_id >= max(listed.read_queues, listed.write_queues):
                what = f"{name} exists, but the topic has {listed.read_queues} queues to read"
                self._add(FindingKind.TOPIC_UNLISTED, Severity.WARNING, "topics.json", what)
            is_batch = (listed.attributes or {}).get("queue.type") == "BatchCQ"
            if is_batch != (name in self._store.batch_queues):
                what = f"{name} is stored as {'simple' if is_batch else 'batch'} queue, its topic says otherwise"
                self._add(FindingKind.TOPIC_UNLISTED, Severity.ERROR, "topics.json", what)

    def _check_consumer_offsets(self) -> None:
        for file in ("consumerOffset.json", "lmqConsumerOffset.json"):
            table = load_config(self._store, file)
            if table is None:
                continue
            for topic_and_group, offsets in table.offsets.items():
                topic = topic_and_group.partition("@")[0]
                for queue_id, offset in offsets.items():
                    self._check_offset(file, topic_and_group, QueueName(topic, queue_id), offset)

    def _check_delay_offsets(self) -> None:
        table: DelayOffsets | None = load_config(self._store, "delayOffset.json")
        for level, offset in (table.offsets if table is not None else {}).items():
            self._check_offset("delayOffset.json", f"level {level}", QueueName(SCHEDULE_TOPIC, level - 1), offset)

    def _check_offset(self, file: str, owner: str, name: QueueName, offset: int) -> None:
        queue = self._queue(name)
        if queue is None:
            if offset > 0:
                what = f"{owner} stands at {offset} of {name}, which has no queue files"
                self._add(FindingKind.OFFSET_OUT_OF_RANGE, Severity.WARNING, file, what)
            return
        low, high = queue.min_offset(self._log_start), queue.max_offset
        if low <= offset <= high:
            return
        # A group below the oldest message is moved up when it reads next; one above the newest waits for ever,
        # unless recovery is still to dispatch what it has consumed.
        beyond = Severity.WARNING if self._store.unclean else Severity.ERROR
        severity = beyond if offset > high or offset < 0 else Severity.NOTE
        what = f"{owner} stands at {offset} of {name}, which reaches from {low} to {high}"
        self._add(FindingKind.OFFSET_OUT_OF_RANGE, severity, file, what)

    def _queue(self, name: QueueName) -> SimpleQueue | None:
        """A queue, opened once: many groups read the same."""
        if name not in self._opened:
            self._opened[name] = open_queue(self._store, name)
        return self._opened[name]

    def _add(self, kind: FindingKind, severity: Severity, file: str, what: str) -> None:
        self._findings.add(kind, severity, f"config/{file}", what)


def is_built_in(topic: str) -> bool:
    """Whether a broker makes this topic itself, so that it need not be listed."""
    return is_system_topic(topic) or topic.startswith((LMQ_PREFIX, RETRY_PREFIX, DLQ_PREFIX))
