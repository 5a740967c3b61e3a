"""Accounts of ACL 1.0 as users of ACL 2.0: an administrator becomes a super user, rights become policies."""

from skyrocket.broker.access import plain_accounts as plain
from skyrocket.broker.access.plain_accounts import Account
from skyrocket.broker.access.policies import ALL, ALLOW, CUSTOM, DEFAULT, DENY, Acl, Entry, Policy, Resource
from skyrocket.broker.access.users import NORMAL, SUPER, User


def user_of(account: Account) -> User:
    """The user that signs as the account did."""
    return User(account.access_key, account.secret_key, SUPER if account.is_admin else NORMAL)


def acl_of(account: Account) -> Acl:
    """The account's rights: special ones are custom entries, defaults those of the default policy."""
    custom = [_entry(Resource("Topic", name, False), bits) for name, bits in account.topics.items()]
    custom += [_entry(Resource("Group", name, False), bits) for name, bits in account.groups.items()]
    default = [
        _entry(Resource("Topic", "", True), account.default_topic),
        _entry(Resource("Group", "", True), account.default_group),
    ]
    policies = (Policy(CUSTOM, tuple(custom)), Policy(DEFAULT, tuple(default)))
    return Acl(f"User:{account.access_key}", tuple(policy for policy in policies if policy.entries))


def _entry(resource: Resource, bits: int) -> Entry:
    actions = tuple(name for name, bit in (("Pub", plain.PUB), ("Sub", plain.SUB)) if bits & bit)
    if bits & plain.DENY or not actions:
        return Entry(resource, frozenset({ALL}), DENY, named_actions=(ALL,))
    return Entry(resource, frozenset(actions), ALLOW, named_actions=actions)
