"""Users and policies: saved before they count, and read again as they were."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.access.migration import acl_of, user_of
from skyrocket.broker.access.plain_accounts import account_of
from skyrocket.broker.access.policies import CUSTOM, DEFAULT, Acl, Entry, Policy, resource_of
from skyrocket.broker.access.user_file import AccessContent, decode, encode, user_file
from skyrocket.broker.access.user_table import UserTable
from skyrocket.broker.access.users import User
from skyrocket.errors import CorruptFile, DataError
from skyrocket.protocol.errors import SystemFailure

NAMES = st.text(min_size=1, max_size=8)
USERS = st.builds(User, NAMES, st.text(max_size=8), st.sampled_from(["Super", "Normal"]), st.sampled_from(["enable"]))


def entry(resource: str, *actions: str) -> Entry:
    meant = resource_of(resource)
    assert meant is not None
    return Entry(meant, frozenset(actions), "Allow", ("10.0.0.0/8",), actions)


ACLS = st.builds(
    Acl,
    NAMES.map("User:{}".format),
    st.lists(
        st.builds(
            Policy,
            st.sampled_from([CUSTOM, DEFAULT]),
            st.lists(st.sampled_from([entry("Topic:a*", "Pub", "Sub"), entry("*", "All")]), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(USERS, max_size=3), st.lists(ACLS, max_size=3))
def test_the_file_is_read_as_it_was_written(users: list[User], acls: list[Acl]) -> None:
    content = AccessContent(tuple(users), tuple(acls))
    assert decode(encode(content)) == content


@given(st.binary(max_size=60))
def test_other_bytes_raise_nothing_but_a_data_error(data: bytes) -> None:
    with contextlib.suppress(DataError):
        decode(data)


@pytest.mark.parametrize(
    "text",
    [
        '{"users":[{"username":"a"}]}',
        '{"users":[{"password":"a"}]}',
        "[]",
        '{"acls":[{"policies":[{"entries":[{}]}]}]}',
    ],
)
def test_users_without_name_or_password_and_entries_without_meaning_are_refused(text: str) -> None:
    with pytest.raises(DataError):
        decode(text.encode())


def test_a_damaged_file_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "access.json").write_text('{"users": [')
    with pytest.raises(CorruptFile):
        UserTable(user_file(tmp_path)).load()


async def test_what_cannot_be_saved_does_not_count(tmp_path: Path) -> None:
    changes: list[None] = []
    table = UserTable(user_file(tmp_path), lambda: changes.append(None))
    table.load()
    await table.create_user("alice", "secret", None, None)
    before = (dict(table.users), len(changes))
    (tmp_path / "access.json.tmp").mkdir()  # where the next content would be written
    with pytest.raises(SystemFailure, match="nothing has changed"):
        await table.update_user("alice", "another", None, None)
    assert (table.users, len(changes)) == before


def test_rights_of_an_account_become_policies() -> None:
    account = account_of(
        {
            "accessKey": "alice12345",
            "secretKey": "secret12345",
            "defaultTopicPerm": "SUB",
            "topicPerms": ["orders=PUB|SUB", "bills=DENY"],
            "groupPerms": ["shop=SUB"],
        },
        "file",
    )
    assert user_of(account) == User("alice12345", "secret12345", "Normal")
    acl = acl_of(account)
    lines = [(p.type, str(e.resource), e.named_actions, e.decision) for p in acl.policies for e in p.entries]
    assert lines == [
        ("Custom", "Topic:orders", ("Pub", "Sub"), "Allow"),
        ("Custom", "Topic:bills", ("All",), "Deny"),
        ("Custom", "Group:shop", ("Sub",), "Allow"),
        ("Default", "Topic:*", ("Sub",), "Allow"),
        ("Default", "Group:*", ("All",), "Deny"),
    ]
