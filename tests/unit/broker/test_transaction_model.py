"""Transactions against a simple model: random beginnings, ends, checks, restarts, kills, while the clock stands still.

A transaction is delivered if and only if it was committed, and once; a producer is asked at the right time, at most as
often as it is set, and never about what has ended.
"""

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.broker.transaction_model import TransactionsAgainstAModel

TestTransactionsAgainstAModel = pytest.mark.requirement("A103", "A104", "B038", "D023")(
    TransactionsAgainstAModel.TestCase
)
TestTransactionsAgainstAModel.settings = settings(
    max_examples=10, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
