"""What happens to a message that asks for a time of its own, before it is put.

TIMER_DELAY_SEC, else TIMER_DELAY_MS, else TIMER_DELIVER_MS       when, by the first of them that is there
in the past              put as if it had not asked
too far                  refused, and so is a value that is not a number
the step is crowded      refused: at random from `timerCongestNumEachSlot` on, always at twice as many
else                     goes to rmq_sys_wheel_timer; TIMER_OUT_MS, REAL_TOPIC and REAL_QID say for what
"""

import random
import re
from typing import Final

from skyrocket.broker.rules.put_rules import real_properties
from skyrocket.broker.timer.service import TimerService
from skyrocket.clock import Clock
from skyrocket.config.sections import StoreConfig
from skyrocket.format.properties import PROPERTY_END, find_property, without_property
from skyrocket.format.property_bytes import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DELAY_SEC,
    TIMER_DELETE_UNIQUE_KEY,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    TIMER_REQUESTS,
)
from skyrocket.format.timer_wheel import parked_time_ms
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.protocol.errors import MessageIllegal, SystemFailure
from skyrocket.store.commit_log import PutMessage

MANY_UNPARKED: Final = 1000  # timers that were sent and are not on the wheel yet
_NO_LIMIT: Final = 2**31 - 1
_MOST_DIGITS: Final = 18
_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,18}")


class TimerRules:
    """The keeper of timers that senders' messages meet (`rules.put_rules`); without a service nothing can wait."""

    def __init__(self, config: StoreConfig, clock: Clock, service: TimerService | None = None) -> None:
        self._clock = clock
        self._service = service
        self._is_on = config.timer_wheel
        self.use(config)

    def use(self, config: StoreConfig) -> None:
        """Go by these limits."""
        self._longest_ms = config.timer_max_delay_seconds * 1000
        self._precision_ms = config.timer_precision_ms
        self._slot_limit = config.timer_slot_limit

    def have(self, service: TimerService | None) -> None:
        """Have a timer from now on, or none."""
        self._service = service

    @property
    def is_on(self) -> bool:
        return self._is_on

    @property
    def is_at_work(self) -> bool:
        """Whether this broker has a timer now: a slave has one while it acts as master."""
        return self._service is not None

    @property
    def is_behind(self) -> bool:
        """Whether what was due some steps ago may not have been delivered, or waits to be put on the wheel."""
        service = self._service
        if service is None:
            return False
        late_ms = self._clock.now_ms() - service.read_time_ms
        return late_ms > 2 * self._precision_ms or service.unparked > MANY_UNPARKED

    def park(self, message: PutMessage) -> None:
        """Let a message wait if it asks for it; raises MessageIllegal or SystemFailure."""
        properties = message.properties
        if message.topic == TIMER_TOPIC:
            return
        has_own_words = b"TIMER_OUT_MS" in properties or b"REAL_" in properties  # which only the broker writes
        if has_own_words and find_property(properties, TIMER_OUT_MS) is not None:
            return
        for asked in TIMER_REQUESTS:
            text = find_property(properties, asked) if asked in properties else None
            if text is not None:
                break
        else:
            return
        out_ms = self.step_for(asked, text)
        if out_ms is None:
            if find_property(properties, TIMER_DELETE_UNIQUE_KEY) is not None:
                raise self._illegal()
            return
        if has_own_words:
            for name in (TIMER_OUT_MS, REAL_TOPIC, REAL_QUEUE_ID):
                properties = without_property(properties, name)
        if not properties.endswith(PROPERTY_END):
            properties += PROPERTY_END
        ending = real_properties(message.topic, message.queue_id)
        message.properties = b"%bTIMER_OUT_MS\x01%d\x02%b" % (properties, out_ms, ending)
        message.topic, message.queue_id = TIMER_TOPIC, 0

    def step_for(self, asked: bytes, text: bytes) -> int | None:
        """The step (TIMER_OUT_MS) that a request means; None when its time has passed. Raises as `park` does."""
        if self._service is None:
            why = "timers are kept by the master" if self.is_on else "timerWheelEnable is false"
            raise SystemFailure(f"accurate timer message is not enabled, {why}")
        now_ms = self._clock.now_ms()
        if not (text.isdigit() and len(text) <= _MOST_DIGITS) and _NUMBER.fullmatch(text) is None:
            raise self._illegal()
        deliver_ms = int(text)
        if asked != TIMER_DELIVER_MS:
            deliver_ms = now_ms + (deliver_ms * 1000 if asked == TIMER_DELAY_SEC else deliver_ms)
        if deliver_ms <= now_ms:
            return None
        if deliver_ms - now_ms > self._longest_ms:
            raise self._illegal()
        out_ms = parked_time_ms(deliver_ms, self._precision_ms)
        if self._slot_limit != _NO_LIMIT:
            self._check_crowd(out_ms)
        return out_ms

    def _illegal(self) -> MessageIllegal:
        return MessageIllegal(
            f"timer message illegal, the delay time should not be bigger than the max delay {self._longest_ms}ms; "
            "or if set del msg, the delay time should be bigger than the current time"
        )

    def _check_crowd(self, out_ms: int) -> None:
        """Raises SystemFailure, the more likely the more messages wait for the same step.

        # RocketMQ refuses the less likely the more there are; at twice the limit it refuses them all, as we do.
        """
        limit = self._slot_limit
        assert self._service is not None
        waiting = self._service.waiting_at(out_ms)
        if waiting > limit and random.random() * limit < waiting - limit:
            raise SystemFailure(
                f"timer message is under flow control, max num limit is {2 * limit} or the current value is greater "
                f"than {limit} and less than {2 * limit}, trigger random flow control"
            )
