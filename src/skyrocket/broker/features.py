"""Everything that a broker can do: one line each. What is above is opened first and closed last."""

from collections.abc import Callable
from typing import Final

from skyrocket.broker.access.feature import AccessFeature
from skyrocket.broker.acting.feature import ActingFeature
from skyrocket.broker.admin.feature import AdminFeature
from skyrocket.broker.clients.feature import ClientsFeature
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.flow.feature import FlowFeature
from skyrocket.broker.offsets.feature import OffsetsFeature
from skyrocket.broker.pop.feature import PopFeature
from skyrocket.broker.pull.feature import PullFeature
from skyrocket.broker.query.feature import QueryFeature
from skyrocket.broker.quotas.feature import QuotasFeature
from skyrocket.broker.registration.feature import RegistrationFeature
from skyrocket.broker.replication.feature import ReplicationFeature
from skyrocket.broker.send.feature import SendFeature
from skyrocket.broker.statistics.feature import StatisticsFeature
from skyrocket.broker.timer.feature import TimerFeature
from skyrocket.broker.transactions.feature import TransactionsFeature

FEATURES: Final[tuple[Callable[[Parts], Feature], ...]] = (
    StatisticsFeature,
    AccessFeature,
    AdminFeature,
    OffsetsFeature,
    ClientsFeature,
    ReplicationFeature,  # above all that put messages: slaves get the last ones, too
    ActingFeature,
    DelayFeature,
    TimerFeature,
    TransactionsFeature,
    SendFeature,
    FlowFeature,  # after send, whose messages it judges at a turn's end, and before those who wait for a permission
    PullFeature,
    PopFeature,
    QueryFeature,
    QuotasFeature,
    RegistrationFeature,  # when all others serve
)
