"""Quotas of accounts and namespaces, and what is used of them. They are ours, RocketMQ has none."""

from dataclasses import field

from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.json_body import BodyBase, body


@body
class QuotaLimits(BodyBase):
    """Limits by the name of their kind; -1 takes one away."""

    limits: dict[str, int] = field(default_factory=dict)


@body
class QuotaUse(BodyBase):
    """One limit: how much there may be, how much there is, and how often somebody wanted more."""

    kind: str = ""
    limit: int = 0
    used: float = 0.0
    exceeded: int = 0


@body
class QuotaRow(BodyBase):
    """The quota of an account or a namespace; of `*` the use is that of all without a quota of their own."""

    subject_type: str = ""
    name: str = ""
    uses: tuple[QuotaUse, ...] = ()


@body
class TopicOwnerList(BodyBase):
    """Accounts by the topics that they created."""

    data_version: DataVersion | None = None
    owners: dict[str, str] = field(default_factory=dict)


@body
class QuotaList(BodyBase):
    """All of them."""

    data_version: DataVersion | None = None
    quotas: tuple[QuotaRow, ...] = ()
