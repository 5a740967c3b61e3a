"""The state machine of pop (tests/unit/broker/pop/pop_machine.py), longer and each time another."""

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.broker.pop.pop_machine import PopMachine


class LongPopMachine(PopMachine):
    """The same rules."""


LongPopMachine.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    derandomize=False,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
TestLongPopMachine = pytest.mark.slow(LongPopMachine.TestCase)
