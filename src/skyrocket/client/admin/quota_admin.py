"""Quotas of accounts and namespaces, a feature of Skyrocket's brokers; each broker counts for itself.

Changes go to masters, and slaves take them over.
"""

from collections.abc import Mapping
from typing import Final

from skyrocket.client.admin.admin_calls import AdminCalls
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.core.errors import NotFound, WrongUse
from skyrocket.model.quota import ACCOUNT, NAMESPACE, NO_LIMIT, shown, wrong_quota
from skyrocket.protocol.bodies.quotas import QuotaLimits, QuotaList, QuotaRow
from skyrocket.protocol.requests.quotas import ListQuotas, RemoveQuota, SetQuota

_INSTEAD: Final = "Apache RocketMQ has no quotas"


class QuotaAdmin(AdminCalls):
    """Operations on quotas; raises NotOffered at brokers of Apache RocketMQ."""

    async def quotas(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, tuple[QuotaRow, ...]]:
        """All quotas with what is used of them, master by master."""

        async def listed(place: BrokerPlace) -> tuple[QuotaRow, ...]:
            reply = await self._ours(place.address, ListQuotas(), "listing quotas", _INSTEAD)
            return QuotaList.decode(reply.body).quotas

        return await self._each(await self._places(cluster, broker), listed)

    async def set_quota(
        self,
        limits: Mapping[str, int | None],
        *,
        account: str | None = None,
        namespace: str | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> list[BrokerPlace]:
        """Change limits of an account or a namespace; None takes one away, those that are not named stay.

        `*` stands for each that has no quota of its own, "" for clients without an account, or topics without a
        namespace. Raises WrongUse.
        """
        subject, name = subject_of(account, namespace)
        wanted = {kind: NO_LIMIT if limit is None else limit for kind, limit in limits.items()}
        wrong = wrong_quota(subject, name, wanted) if wanted else "name at least one limit"
        if wrong is not None:
            raise WrongUse(wrong)
        body = QuotaLimits(wanted).encode()

        async def change(place: BrokerPlace) -> None:
            request = SetQuota(subject_type=subject, name=name)
            await self._ours(place.address, request, f"setting the quota of {shown(subject, name)}", _INSTEAD, body)

        return list(await self._each(await self._places(cluster, broker), change))

    async def remove_quota(
        self,
        *,
        account: str | None = None,
        namespace: str | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> list[BrokerPlace]:
        """Take all limits of an account or a namespace away; raises NotFound where no broker has any. Where it was."""
        subject, name = subject_of(account, namespace)
        found = await self.quotas(cluster=cluster, broker=broker)
        having = [
            place
            for place, rows in found.items()
            if any((row.subject_type, row.name) == (subject, name) for row in rows)
        ]
        if not having:
            raise NotFound("{subject} has no quota of its own: `quota list` has all", subject=shown(subject, name))

        async def remove(place: BrokerPlace) -> None:
            request = RemoveQuota(subject_type=subject, name=name)
            await self._ours(place.address, request, f"removing the quota of {shown(subject, name)}", _INSTEAD)

        return list(await self._each(having, remove))


def subject_of(account: str | None, namespace: str | None) -> tuple[str, str]:
    """Whose quota is meant; raises WrongUse unless exactly one is named."""
    if account is not None and namespace is None:
        return ACCOUNT, account
    if namespace is not None and account is None:
        return NAMESPACE, namespace
    raise WrongUse("name either an account or a namespace")
