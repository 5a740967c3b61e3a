"""Nouns in a namespace: groups and topics are named as its clients name them, and those of others are left alone."""

from pathlib import Path

from skyrocket.client import ClientSettings, Message, blocking
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows, skyrocket, well

SHOP = ("--namespace", "shop")


def test_a_group_that_is_there_is_not_created_again_in_its_namespace(rocketmq: LocalCluster) -> None:
    well(rocketmq, "group", "create", "Billing", "--retries", "3", *SHOP)
    again = skyrocket(rocketmq, "group", "create", "Billing", *SHOP)
    assert (again.code, "group Billing is there already" in again.errors) == (2, True)
    well(rocketmq, "group", "create", "Billing")
    (own,) = rows(rocketmq, "group", "list", *SHOP)
    assert (own["group"], own["retryMaxTimes"]) == ("Billing", 3)
    assert [row["group"] for row in rows(rocketmq, "group", "list")] == ["Billing", "shop%Billing"]


def test_lag_is_that_of_the_group_in_the_namespace(rocketmq: LocalCluster) -> None:
    settings = ClientSettings(rocketmq.name_server_address, namespace="shop")
    well(rocketmq, "topic", "create", "Orders", "--queues", "1", *SHOP)
    well(rocketmq, "group", "create", "Billing", *SHOP)
    with blocking.Producer("P", client=settings) as producer:
        producer.send(Message("Orders", b"x"))
    previewed = skyrocket(rocketmq, "reset", "--group", "Billing", "--topic", "Orders", "--to", "earliest", *SHOP)
    assert previewed.code == 0, previewed.errors
    (own,) = rows(rocketmq, "group", "list", *SHOP)
    assert (own["group"], own["lag"]) == ("Billing", 1)
    unknown = skyrocket(rocketmq, "reset", "--group", "Biling", "--topic", "Orders", "--to", "earliest", *SHOP)
    assert (unknown.code, "there is no group Biling" in unknown.errors) == (4, True)


def test_a_file_is_applied_in_a_namespace_and_then_nothing_is_left_to_do(
    rocketmq: LocalCluster, tmp_path: Path
) -> None:
    well(rocketmq, "group", "create", "Billing", "--orderly", *SHOP)
    file = tmp_path / "cluster.yml"
    file.write_text("topics: {Orders: {queues: 2}}\ngroups: {Billing: {retry_max_times: 3}}\n")
    planned = well(rocketmq, "apply", "-f", str(file), *SHOP)
    assert "retry_max_times  16 → 3" in planned
    assert "consumes_orderly" not in planned
    assert "nothing is to be changed" in well(rocketmq, "apply", "-f", str(file), *SHOP)
    (own,) = rows(rocketmq, "group", "list", *SHOP)
    assert (own["orderly"], own["retryMaxTimes"]) == (True, 3)


def test_groups_of_other_namespaces_are_not_among_those_of_ours(rocketmq: LocalCluster) -> None:
    names = rocketmq.name_server_address
    with blocking.Admin(names) as admin:
        for name in ("Plain", "shop%Billing", "bank%Billing"):
            admin.create_group(name)
    with blocking.Admin(client=ClientSettings(names, namespace="shop")) as admin:
        groups = admin.groups()
        assert {name for name in groups if name in ("Plain", "Billing") or "%" in name} == {"Billing"}
        assert groups["Billing"].name == "Billing"
        assert (admin.group_configs("shop%Billing")).keys() == (admin.group_configs("Billing")).keys()
