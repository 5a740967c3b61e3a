"""What requests need is read from the very fields that their handlers read."""

from collections.abc import Iterator, Mapping

import pytest

from skyrocket.broker.access.required_permissions import (
    _TABLE,
    CLUSTER,
    DECIDED_BY,
    GET,
    GROUP,
    PUB,
    SUB,
    TOPIC,
    UPDATE,
    Permission,
    RequiredPermissions,
    topic_need,
)
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MalformedBody
from skyrocket.protocol.requests.catalogue import REQUESTS

# Names of topics and consumer groups in headers; what else bears such a name decides nothing.
NAMING = {"topic", "consumerGroup", "group", "groupName", "destGroup", "compareGroup", "filterGroups", "topicList"}


class Watched(Mapping[str, str]):
    """Fields that remember who was asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return "1"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


def fields_read(code: int) -> set[str]:
    watched = Watched()
    command = RemotingCommand(code)
    try:
        list(_TABLE[code](watched, command))
    except MalformedBody:
        return set()  # all is in the body
    return watched.asked


@pytest.mark.parametrize("code", sorted(_TABLE), ids=lambda code: RequestCode(code).name)
def test_the_fields_that_are_read_are_those_of_the_header(code: int) -> None:
    header = {field.name: field.attribute for field in REQUESTS[code].wire_fields}
    read = fields_read(code)
    assert read <= header.keys()
    assert {name for name, attribute in header.items() if name in NAMING or attribute == "topic"} <= read


@pytest.mark.parametrize("code", sorted(DECIDED_BY), ids=lambda code: RequestCode(code).name)
def test_what_is_remembered_by_two_fields_is_decided_by_them(code: int) -> None:
    assert fields_read(code) == set(DECIDED_BY[code]) - {""}


@pytest.mark.parametrize(
    ("topic", "group", "needs"),
    [
        ("T", "G", [(TOPIC, "T")]),
        ("%RETRY%G", "G", [(GROUP, "G")]),
        ("%RETRY%G", None, [(GROUP, "G")]),
        ("%RETRY%Other", "G", [(GROUP, "Other")]),
        ("%RETRY%G_T", "G", [(GROUP, "G"), (TOPIC, "T")]),
        ("%RETRY%G+T", "G", [(GROUP, "G"), (TOPIC, "T")]),
        ("%RETRY%GT", "G", [(GROUP, "GT")]),
        ("%RETRY%G_T", "", [(GROUP, "G_T")]),
        ("%DLQ%G", "G", [(TOPIC, "%DLQ%G")]),
        ("", "G", [(TOPIC, "")]),
    ],
)
def test_a_retry_topic_belongs_to_its_group(topic: str, group: str | None, needs: list[tuple[str, str]]) -> None:
    assert [need[:2] for need in topic_need(topic, SUB, group)] == needs


@pytest.mark.parametrize(
    ("code", "fields", "needs"),
    [
        (310, {"b": "T", "a": "PG"}, [Permission(TOPIC, "T", PUB)]),
        (310, {"b": "%RETRY%G", "a": "PG"}, [Permission(GROUP, "G", SUB)]),
        (
            11,
            {"topic": "T", "consumerGroup": "G"},
            [Permission(TOPIC, "T", SUB), Permission(GROUP, "G", SUB)],
        ),
        (
            361,
            {"topic": "T", "consumerGroup": "G"},
            [Permission(TOPIC, "T", SUB), Permission(GROUP, "G", SUB)],
        ),
        (
            200050,
            {"topic": "T", "consumerGroup": "G"},
            [Permission(GROUP, "G", SUB), Permission(TOPIC, "T", SUB)],
        ),
        (324, {"topic": "X_REPLY_TOPIC"}, []),
        (324, {"topic": "T"}, [Permission(TOPIC, "T", PUB)]),
        (26, {}, [Permission(CLUSTER, "Shop", GET)]),
        (25, {}, [Permission(CLUSTER, "Shop", UPDATE)]),
        (60_000, {}, [Permission(CLUSTER, "Shop", UPDATE)]),
        (
            33,
            {"offset": "7", "topic": "Claimed"},
            [Permission(TOPIC, "Claimed", GET), Permission(TOPIC, "Stored", GET)],
        ),
        (33, {"offset": "7"}, [Permission(TOPIC, "Stored", GET)]),
        (33, {"offset": "8"}, [Permission(CLUSTER, "Shop", GET)]),
        (
            36,
            {"offset": "7", "group": "G"},
            [Permission(GROUP, "G", SUB), Permission(TOPIC, "Stored", SUB)],
        ),
        (37, {"commitLogOffset": "7"}, [Permission(TOPIC, "Stored", PUB)]),
        (37, {"commitLogOffset": "8"}, []),
    ],
)
def test_requests_need_these_rights(code: int, fields: dict[str, str], needs: list[Permission]) -> None:
    table = RequiredPermissions("Shop", lambda offset: "Stored" if offset == 7 else None)
    assert table.of(RemotingCommand(code, ext_fields=fields)) == needs
