"""Quotas: set, removed and listed by operators of Skyrocket's brokers; Apache's do not know these codes."""

from skyrocket.protocol.bodies.quotas import QuotaLimits, QuotaList, TopicOwnerList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Request, request


@request(RequestCode.SET_QUOTA, body=QuotaLimits)
class SetQuota(Request[Header]):
    """Change limits of an account or a namespace; those that the body does not name stay."""

    subject_type: str
    name: str = ""


@request(RequestCode.REMOVE_QUOTA)
class RemoveQuota(Request[Header]):
    """Take all limits of an account or a namespace away."""

    subject_type: str
    name: str = ""


@request(RequestCode.LIST_QUOTAS, answer_body=QuotaList)
class ListQuotas(Request[Header]):
    """All quotas with what is used of them; a slave asks for it, too."""


@request(RequestCode.LIST_TOPIC_OWNERS, answer_body=TopicOwnerList)
class ListTopicOwners(Request[Header]):
    """Who created which topic; a slave asks for it."""
