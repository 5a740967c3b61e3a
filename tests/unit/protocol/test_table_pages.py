"""Tables that a broker gives in pages: whole in the end, whatever changes meanwhile."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from skyrocket.broker.rules.paging import page_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.groups import GroupTable
from skyrocket.protocol.bodies.topics import TopicTable
from skyrocket.protocol.errors import MalformedBody
from skyrocket.protocol.requests.admin_groups import GetAllSubscriptionGroupAnswer
from skyrocket.protocol.requests.admin_topics import GetAllTopicConfig, GetAllTopicConfigAnswer
from skyrocket.protocol.requests.table_pages import PAGE_ROWS, GroupPages, TopicPages


def topics(count: int, first: int = 0) -> dict[str, TopicConfig]:
    return {name: TopicConfig(name) for name in (f"T{number:05}" for number in range(first, first + count))}


def version(counter: int) -> DataVersion:
    return DataVersion(counter=counter)


def answer(
    request: GetAllTopicConfig, table: Mapping[str, TopicConfig], counter: int
) -> tuple[GetAllTopicConfigAnswer, bytes]:
    """As a master of RocketMQ 5.4 answers."""
    page = page_of(table, request.topic_seq, request.max_topic_num, request.data_version, version(counter))
    return GetAllTopicConfigAnswer(total_topic_num=len(table)), TopicTable(version(counter), page).encode()


def collected(pages: TopicPages, answers: Callable[[int, GetAllTopicConfig], tuple[Any, bytes]]) -> int:
    """Ask until the table is whole; how often that was."""
    asked = 0
    while (request := pages.request) is not None:
        assert isinstance(request, GetAllTopicConfig)
        pages.take(*answers(asked, request))
        asked += 1
        assert asked < 100
    return asked


def test_the_first_request_has_the_fields_that_a_master_of_5_4_decodes() -> None:
    pages, groups = TopicPages(), GroupPages()
    assert pages.request is not None
    assert pages.request.ext_fields() == {"topicSeq": "0", "maxTopicNum": "2000", "dataVersion": ""}
    assert groups.request is not None
    assert groups.request.ext_fields() == {"groupSeq": "0", "maxGroupNum": "2000", "dataVersion": ""}


@pytest.mark.parametrize("count", [0, 1, PAGE_ROWS, PAGE_ROWS + 1, 2 * PAGE_ROWS + 5])
def test_a_table_is_whole_after_as_many_pages_as_it_has(count: int) -> None:
    table, pages = topics(count), TopicPages()
    assert collected(pages, lambda _, request: answer(request, table, 7)) == max(-(-count // PAGE_ROWS), 1)
    assert (pages.table.data_version, pages.table.topics) == (version(7), table)


def test_a_master_that_knows_no_pages_gives_all_at_once() -> None:
    table, pages = topics(PAGE_ROWS + 500), TopicPages()
    everything = TopicTable(version(7), table).encode()
    assert collected(pages, lambda *_: (GetAllTopicConfigAnswer(), everything)) == 1
    assert pages.table.topics == table


def test_a_table_that_changes_between_two_pages_is_read_from_the_beginning() -> None:
    old, new, pages = topics(3 * PAGE_ROWS), topics(2 * PAGE_ROWS, first=PAGE_ROWS), TopicPages()

    def answers(asked: int, request: GetAllTopicConfig) -> tuple[GetAllTopicConfigAnswer, bytes]:
        return answer(request, old, 7) if asked < 2 else answer(request, new, 8)

    assert collected(pages, answers) == 4
    assert (pages.table.data_version, pages.table.topics) == (version(8), new)


def test_a_table_that_changes_all_the_time_is_given_up() -> None:
    table, pages = topics(2 * PAGE_ROWS), TopicPages()
    with pytest.raises(MalformedBody, match="changes while it is read"):
        collected(pages, lambda asked, request: answer(request, table, asked))


def test_a_master_that_has_fewer_than_it_says_is_not_believed() -> None:
    pages = TopicPages()
    nothing = TopicTable(version(7), {}).encode()
    with pytest.raises(MalformedBody, match="0 of 5"):
        pages.take(GetAllTopicConfigAnswer(total_topic_num=5), nothing)


def test_groups_come_with_what_is_forbidden_to_them() -> None:
    names, pages = [f"G{number:05}" for number in range(PAGE_ROWS + 1)], GroupPages()
    for part in (names[:PAGE_ROWS], names[PAGE_ROWS:]):
        assert pages.request is not None
        groups = {name: SubscriptionGroup(name) for name in part}
        body = GroupTable(version(3), groups, {part[-1]: {"Orders": 4}}).encode()
        pages.take(GetAllSubscriptionGroupAnswer(total_group_num=len(names)), body)
    assert pages.request is None
    assert list(pages.table.groups) == names
    assert pages.table.forbidden == {names[PAGE_ROWS - 1]: {"Orders": 4}, names[-1]: {"Orders": 4}}
