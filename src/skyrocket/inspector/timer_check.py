"""Log ↔ timer log ↔ timer wheel: units point to parked records and to each other, slots point to units."""

from skyrocket.errors import DataError
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import decode_properties
from skyrocket.format.timer_checkpoint import SIZE as CHECKPOINT_SIZE
from skyrocket.format.timer_checkpoint import decode_timer_checkpoint
from skyrocket.format.timer_log import NO_POSITION, TimerLogEnd
from skyrocket.format.timer_wheel import SLOT_SIZE, WHEEL_SIZE, Slot
from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.inspector.log_check import LogExtent
from skyrocket.inspector.recovery_view import RecoveryView
from skyrocket.model.property_names import REAL_TOPIC
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.offline.log_walk import LogReader
from skyrocket.offline.offset_files import read_at
from skyrocket.offline.queue_files import SimpleQueue
from skyrocket.offline.store_files import StoreFiles
from skyrocket.offline.timer_files import PlacedUnit, TimerLogContent, read_timer_log, read_wheel

_Chains = dict[int, list[PlacedUnit]]  # slot time → its units, oldest first


class TimerCheck:
    """Checks the timer's files, when there are any."""

    def __init__(self, store: StoreFiles, reader: LogReader, recovery: RecoveryView, findings: Findings) -> None:
        self._store = store
        self._reader = reader
        self._findings = findings
        # The wheel is written once a second, the log at once: after a kill the wheel is behind.
        self._severity = Severity.WARNING if recovery.unclean else Severity.ERROR

    def check(self, extent: LogExtent) -> None:
        """Report what does not fit."""
        content = read_timer_log(self._store)
        self._check_endings(content)
        chains: _Chains = {}
        for placed in content.units:
            self._check_unit(placed, chains, extent)
        self._check_wheel(chains)
        self._check_checkpoint(content)

    def _check_endings(self, content: TimerLogContent) -> None:
        for file, end, stop in content.endings:
            is_last = file == content.endings[-1][0]
            if end is TimerLogEnd.BLANK or (is_last and end in (TimerLogEnd.ZERO, TimerLogEnd.LIMIT)):
                continue
            severity = self._severity if is_last else Severity.ERROR
            what = f"no whole unit at position {file.offset + stop} ({end.value})"
            self._log(severity, file.offset + stop, what)

    def _check_unit(self, placed: PlacedUnit, chains: _Chains, extent: LogExtent) -> None:
        position, unit = placed
        chain = chains.setdefault(unit.slot_time_ms, [])
        expected = chain[-1].position if chain else NO_POSITION
        before_log = not chain and 0 <= unit.previous < self._store.timer_log.start
        if unit.previous != expected and not before_log:
            self._log(Severity.ERROR, position, f"previous unit {unit.previous} instead of {expected}")
        chain.append(placed)
        if extent.start <= unit.physical_offset < extent.end and not extent.is_damaged(unit.physical_offset):
            self._check_parked_record(placed)
        elif unit.physical_offset >= extent.end or unit.physical_offset < 0:
            what = f"points to physical offset {unit.physical_offset}; the log ends at {extent.end}"
            self._log(self._severity, position, what)

    def _check_parked_record(self, placed: PlacedUnit) -> None:
        position, unit = placed
        head = self._reader.head_at(unit.physical_offset)
        if head is None or head.topic.decode("utf-8", "replace") != TIMER_TOPIC:
            self._log(Severity.ERROR, position, f"no parked record at physical offset {unit.physical_offset}")
            return
        if head.size != unit.record_size:
            self._log(Severity.ERROR, position, f"says size {unit.record_size}; its record has {head.size}")
        real_topic = decode_properties(head.properties).get(REAL_TOPIC)
        expected = java_hash(real_topic) if real_topic is not None else 0
        if unit.topic_hash != expected:
            self._log(Severity.ERROR, position, f"topic hash {unit.topic_hash}; {real_topic!r} has {expected}")

    def _check_wheel(self, chains: _Chains) -> None:
        if not self._store.timer_wheel.exists():
            return
        size = self._store.timer_wheel.stat().st_size
        if size not in (0, WHEEL_SIZE):
            what = f"the file has {size} bytes instead of {WHEEL_SIZE}"
            self._findings.add(FindingKind.FILE_SIZE, Severity.ERROR, "timerwheel", what)
        slots = dict(read_wheel(self._store))
        times = {slot.time_ms for slot in slots.values()}
        for index, slot in slots.items():
            self._check_slot(index, slot, chains.get(slot.time_ms, []))
        newest = max(times, default=0)
        for time_ms, chain in chains.items():
            # A later round of the wheel takes over the slots of times long past.
            if time_ms not in times and not any(slot.time_ms > time_ms for slot in self._rivals(slots, time_ms)):
                what = f"no slot for {len(chain)} units of time {time_ms} (newest slot: {newest})"
                self._findings.add(FindingKind.TIMER_WHEEL_WRONG, self._severity, "timerwheel", what)

    def _rivals(self, slots: dict[int, Slot], time_ms: int) -> list[Slot]:
        index = time_ms // 1000 % (WHEEL_SIZE // SLOT_SIZE)
        return [slots[index]] if index in slots else []

    def _check_slot(self, index: int, slot: Slot, chain: list[PlacedUnit]) -> None:
        log_start = self._store.timer_log.start
        if slot.last_position < log_start:
            return  # its units were deleted with the log that they pointed to
        if not chain or slot.last_position != chain[-1].position:
            last = chain[-1].position if chain else NO_POSITION
            self._wheel(
                self._severity, index, f"slot of {slot.time_ms}: last unit {slot.last_position}, right is {last}"
            )
            return
        if slot.first_position >= log_start and slot.first_position != chain[0].position:
            what = f"slot of {slot.time_ms}: first unit {slot.first_position}, right is {chain[0].position}"
            self._wheel(self._severity, index, what)
            return
        messages = sum(-1 if placed.unit.deletes else 1 for placed in chain)
        if slot.first_position >= log_start and slot.messages != messages:
            # Recovery points slots to their units again, but does not count them.
            what = f"slot of {slot.time_ms} counts {slot.messages} messages, its units {messages}"
            self._wheel(Severity.WARNING, index, what)

    def _check_checkpoint(self, content: TimerLogContent) -> None:
        path = self._store.timer_checkpoint
        if not path.exists():
            return
        name = self._store.name_of(path)
        page = read_at(path, 0, CHECKPOINT_SIZE + 1)
        try:
            checkpoint = decode_timer_checkpoint(page)
        except DataError as error:
            self._findings.add(FindingKind.CHECKPOINT_WRONG, Severity.ERROR, name, str(error))
            return
        if checkpoint.log_flushed_position > content.end:
            what = f"the log is flushed to {checkpoint.log_flushed_position}, but ends at {content.end}"
            self._findings.add(FindingKind.CHECKPOINT_WRONG, self._severity, name, what, position=8)
        queue = self._store.queues.get(QueueName(TIMER_TOPIC, 0))
        end = SimpleQueue(queue).max_offset if queue is not None else 0
        if checkpoint.queue_offset > end:
            what = f"stands at queue offset {checkpoint.queue_offset}; the queue ends at {end}"
            self._findings.add(FindingKind.CHECKPOINT_WRONG, self._severity, name, what, position=16)

    def _log(self, severity: Severity, position: int, what: str) -> None:
        name, inside = self._store.locate(self._store.timer_log, position)
        what = f"unit at position {position}: {what}"
        self._findings.add(FindingKind.TIMER_LOG_WRONG, severity, name, what, position=inside)

    def _wheel(self, severity: Severity, index: int, what: str) -> None:
        self._findings.add(FindingKind.TIMER_WHEEL_WRONG, severity, "timerwheel", what, position=index * SLOT_SIZE)
