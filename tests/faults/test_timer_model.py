"""The timer against its model, for long."""

import pytest
from hypothesis import settings

from tests.unit.broker.timer.timer_model import SETTINGS, AgainstAModel

LongRun = AgainstAModel.TestCase


class TestForLong(LongRun):  # type: ignore[misc, valid-type]
    """More cases, each longer."""

    settings = settings(SETTINGS, max_examples=200, stateful_step_count=40)


pytestmark = pytest.mark.slow
del LongRun
