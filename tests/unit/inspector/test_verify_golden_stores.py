"""Stores that RocketMQ wrote verify without any option: the checks agree with the original."""

import pytest

from skyrocket.inspector.findings import FindingKind, Severity
from tests.golden_store import GOLDEN_STORES, GoldenStore
from tests.unit.inspector.conftest import Copies

UNCLEAN = {"killed", "torn"}


@pytest.mark.requirement("A005", "A008", "A009", "A010", "A017", "A019", "A020", "A026", "A027")
@pytest.mark.parametrize("golden", GOLDEN_STORES, ids=str)
def test_a_golden_store_has_no_errors(golden: GoldenStore, copy_of: Copies) -> None:
    result = copy_of(golden.version, golden.name).verify()
    assert [finding for finding in result.findings if finding.severity is Severity.ERROR] == []
    assert result.has_problems(strict=True) == (golden.name in UNCLEAN), "only an unclean stop leaves warnings"
    kept = [m for m in golden.messages() if m["kind"] == "message" and not m.get("afterRecoveredEnd")]
    assert result.extent.records == len(kept)


@pytest.mark.requirement("A022")
@pytest.mark.parametrize(
    ("version", "entries"), [("4.9.7", "1 entry of a record"), ("5.4.0", "259 entries of records")]
)
def test_a_killed_store_says_how_far_its_queues_are_behind(version: str, entries: str, copy_of: Copies) -> None:
    findings = {finding.kind: finding for finding in copy_of(version, "killed").verify().findings}
    assert findings[FindingKind.QUEUES_BEHIND].what.startswith(f"{entries} from")
    assert {FindingKind.UNCLEAN_STOP, FindingKind.INDEX_BEHIND, FindingKind.EMPTY_LAST_FILE} <= findings.keys()


@pytest.mark.requirement("A022")
@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_what_a_kill_leaves_is_damage_in_a_store_that_was_closed(version: str, copy_of: Copies) -> None:
    store = copy_of(version, "killed")
    store.delete("abort")
    assert {FindingKind.ENTRY_MISSING, FindingKind.INDEX_KEY_MISSING} <= {error.kind for error in store.errors()}


def test_a_torn_record_at_the_end_is_a_warning_that_names_its_place(copy_of: Copies) -> None:
    findings = {finding.kind: finding for finding in copy_of("5.4.0", "torn").verify().findings}
    torn = findings[FindingKind.LOG_TAIL_TORN]
    assert (torn.file, torn.position) == ("commitlog/00000000000002359296", 2375364 - 2359296)


def test_expired_entries_are_counted_in_one_note(copy_of: Copies) -> None:
    findings = {finding.kind: finding for finding in copy_of("4.9.7", "expired").verify().findings}
    assert findings[FindingKind.ENTRY_EXPIRED].what.startswith("806 entries of 37 queues")
    assert findings[FindingKind.INDEX_ENTRY_EXPIRED].what.startswith("22 entries")


def test_the_shape_of_index_files_is_inferred_and_said(copy_of: Copies) -> None:
    findings = {finding.kind: finding for finding in copy_of("5.4.0", "ipv6").verify().findings}
    assert "maxHashSlotNum=500, maxIndexNum=400" in findings[FindingKind.INDEX_SHAPE].what
    given = copy_of("4.9.7", "ipv6").verify("maxHashSlotNum=500", "maxIndexNum=400")
    assert FindingKind.INDEX_SHAPE not in {finding.kind for finding in given.findings}
