"""Findings: sorted, counted, and never a flood."""

from skyrocket.inspector.findings import FindingKind, Findings, Severity


def test_findings_come_worst_first() -> None:
    findings = Findings()
    findings.add(FindingKind.UNCLEAN_STOP, Severity.NOTE, "abort", "a")
    findings.add(FindingKind.FILE_SIZE, Severity.ERROR, "checkpoint", "b")
    findings.add(FindingKind.LOCK_HELD, Severity.WARNING, "lock", "c")
    assert [finding.what for finding in findings] == ["b", "c", "a"]


def test_of_many_alike_only_the_first_are_kept_and_all_are_counted() -> None:
    findings = Findings(alike=3)
    for number in range(10):
        findings.add(FindingKind.ENTRY_WRONG, Severity.ERROR, "queue", str(number))
    findings.add(FindingKind.ENTRY_WRONG, Severity.ERROR, "another", "x")
    assert [finding.what for finding in findings] == ["0", "1", "2", "x", "… and 7 more like these"]
    assert findings.count(Severity.ERROR) == 11


def test_every_kind_has_its_own_code_and_a_remedy() -> None:
    assert len({kind.code for kind in FindingKind}) == len(FindingKind)
    assert all(kind.remedy.endswith(".") for kind in FindingKind)
