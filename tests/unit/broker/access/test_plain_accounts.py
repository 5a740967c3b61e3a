"""Accounts of ACL 1.0 and the files that they are written in."""

from pathlib import Path

import pytest

from skyrocket.broker.access.plain_accounts import DENY, PUB, SUB, account_of, allows, permission_of
from skyrocket.broker.access.plain_files import PlainFiles, content_of, write_content
from skyrocket.broker.access.required_permissions import GROUP, TOPIC, Permission
from skyrocket.broker.access.required_permissions import PUB as TO_PUBLISH
from skyrocket.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        *[("PUB", PUB), ("SUB", SUB), ("PUB|SUB", PUB | SUB), ("SUB|PUB", PUB | SUB), (" PUB ", PUB), ("DENY", DENY)],
        *[(None, DENY), ("", DENY), ("pub", DENY), ("ANY", DENY), ("PUB|", DENY)],
    ],
)
def test_a_permission_that_is_missing_or_unknown_denies(text: str | None, bits: int) -> None:
    assert permission_of(text) == bits


@pytest.mark.parametrize(
    ("owned", "needed", "answer"),
    [
        (PUB, PUB, True),
        (PUB, SUB, False),
        (PUB | SUB, SUB, True),
        (DENY, PUB, False),
        (DENY | PUB, PUB, False),
        (0, PUB, False),
    ],
)
def test_deny_counts_more_than_what_is_allowed(owned: int, needed: int, answer: bool) -> None:
    assert allows(owned, needed) is answer


ENTRY = {
    "accessKey": "alice12345",
    "secretKey": "secret12345",
    "defaultTopicPerm": "DENY",
    "defaultGroupPerm": "SUB",
    "topicPerms": ["orders=PUB|SUB", "bills = SUB "],
    "groupPerms": ["shop=DENY"],
}


@pytest.mark.parametrize(
    ("kind", "name", "bit", "refusal"),
    [
        (TOPIC, "orders", PUB, None),
        (TOPIC, "bills", SUB, None),
        (TOPIC, "bills", PUB, "No permission for topic:bills"),
        (TOPIC, "other", PUB, "No default permission for topic:other"),
        (GROUP, "other", SUB, None),
        (GROUP, "shop", SUB, "No permission for group:shop"),
        (GROUP, "orders", PUB, "No default permission for group:orders"),
    ],
)
def test_a_special_entry_counts_more_than_the_default(kind: str, name: str, bit: int, refusal: str | None) -> None:
    assert account_of(ENTRY, "file").refusal_of(Permission(kind, name, TO_PUBLISH), bit) == refusal


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"accessKey": "short"}, "at least 7 characters"),
        ({"secretKey": "sesame"}, "at least 7 characters"),
        ({"accessKey": None}, "at least 7 characters"),
        ({"topicPerms": ["orders"]}, "name=permission"),
        ({"groupPerms": ["=PUB"]}, "name=permission"),
        ({"topicPerms": "orders=PUB"}, "not a list"),
        ({"whiteRemoteAddress": "10.0.0.x"}, "whiteRemoteAddress"),
    ],
)
def test_a_wrong_account_is_named_without_its_secret(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        account_of(ENTRY | change, "plain_acl.yml")
    assert "plain_acl.yml" in str(caught.value)
    assert "secret12345" not in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_secrets_are_in_no_repr() -> None:
    assert "secret12345" not in repr(account_of(ENTRY, "file"))


MAIN = """
globalWhiteRemoteAddresses:
- 10.10.103.*
accounts:
- accessKey: RocketMQ
  secretKey: 0123456789
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  topicPerms:
  - topicA=DENY
- accessKey: rocketmq2
  secretKey: 12345678
  admin: true
"""


def test_all_files_together_make_the_rules_and_of_equal_keys_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "acl" / "deep").mkdir(parents=True)
    (tmp_path / "plain_acl.yml").write_text(MAIN)
    (tmp_path / "acl" / "more.yaml").write_text("accounts: [{accessKey: rocketmq2, secretKey: another1}]")
    (tmp_path / "acl" / "deep" / "x.yml").write_text("accounts: [{accessKey: deeper1, secretKey: another1}]")
    (tmp_path / "acl" / "notes.txt").write_text("not: [read")
    (tmp_path / "acl" / "empty.yml").write_text("")
    rules = PlainFiles(tmp_path).read()
    assert set(rules.accounts) == {"RocketMQ", "rocketmq2", "deeper1"}
    assert rules.accounts["RocketMQ"].secret_key == "0123456789"  # as it is written, not as a number
    assert rules.accounts["rocketmq2"].secret_key == "another1"
    assert rules.repeated == ("rocketmq2",)
    assert rules.files["RocketMQ"] == tmp_path / "plain_acl.yml"
    assert [matches("10.10.103.7") for matches in rules.white_addresses] == [True]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("accounts: [", r"is not YAML \(line 1"),
        ("- a\n- b", "must hold the keys"),
        ("accounts: alice", "accounts must be a list"),
        ("accounts: [alice]", "accounts must be a list"),
        ("globalWhiteRemoteAddresses: '*'", "must be a list"),
        ("globalWhiteRemoteAddresses: [x]", "not an address pattern"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "plain_acl.yml").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        PlainFiles(tmp_path).read()


def test_broken_yaml_does_not_show_the_secrets_in_it(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").write_text("accounts:\n- accessKey: alice12345\n  secretKey: 'secret12345\n")
    with pytest.raises(ConfigError) as caught:
        PlainFiles(tmp_path).read()
    assert "secret12345" not in str(caught.value)


def test_without_any_file_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="aclConfigPath"):
        PlainFiles(tmp_path).read()


def test_a_rewritten_file_reads_the_same_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "plain_acl.yml"
    path.write_text(MAIN)
    path.chmod(0o640)
    content = content_of(path)
    write_content(path, content)
    assert content_of(path) == content
    assert path.stat().st_mode & 0o777 == 0o640
    new = tmp_path / "new.yml"
    write_content(new, content)
    assert new.stat().st_mode & 0o777 == 0o600
    assert {left.name for left in tmp_path.iterdir()} == {"new.yml", "plain_acl.yml"}
