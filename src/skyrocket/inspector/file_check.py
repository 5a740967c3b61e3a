"""Names, sizes and continuity of files, before anything in them is read."""

from collections import Counter

from skyrocket.format.queue_entry import BATCH_ENTRY_SIZE, ENTRY_SIZE
from skyrocket.inspector.findings import FindingKind, Findings, Severity
from skyrocket.offline.offset_files import OffsetFiles
from skyrocket.offline.store_files import StoreFiles


def check_files(store: StoreFiles, findings: Findings, sizes: dict[str, int]) -> None:
    """Report what does not look like a file of its directory; `sizes` are those that the settings demand."""
    for path in [*store.strays, *store.commit_log.strays, *store.timer_log.strays]:
        _stray(store, path.name, store.name_of(path), findings)
    _check_sequence(store, store.commit_log, sizes.get("commitlog", store.commit_log.file_size), 1, findings)
    _check_sequence(store, store.timer_log, store.timer_log.file_size, 1, findings)
    for group, unit in ((store.queues, ENTRY_SIZE), (store.batch_queues, BATCH_ENTRY_SIZE), (store.extensions, 1)):
        usual = sizes.get("consumequeue", 0) if group is store.queues else 0
        usual = usual or _usual_size(list(group.values()))
        for files in group.values():
            for path in files.strays:
                _stray(store, path.name, store.name_of(path), findings)
            _check_sequence(store, files, usual, unit, findings)


def _usual_size(groups: list[OffsetFiles]) -> int:
    sizes = Counter(file.size for files in groups for file in files.files)
    return sizes.most_common(1)[0][0] if sizes else 0


def _stray(store: StoreFiles, name: str, shown: str, findings: Findings) -> None:
    findings.add(FindingKind.STRAY_FILE, Severity.ERROR, shown, f"{name} is not the name of a store file")


def _check_sequence(store: StoreFiles, files: OffsetFiles, usual: int, unit: int, findings: Findings) -> None:
    for file in files.files:
        name = store.name_of(file.path)
        if file.size != usual:
            what = f"the file has {file.size} bytes; files of this kind have {usual}"
            findings.add(FindingKind.FILE_SIZE, Severity.ERROR, name, what)
        elif file.size % unit:
            findings.add(
                FindingKind.FILE_SIZE, Severity.ERROR, name, f"{file.size} bytes are not whole entries of {unit}"
            )
        elif usual and file.offset % usual:
            what = f"the name is not a multiple of the file size {usual}"
            findings.add(FindingKind.STRAY_FILE, Severity.ERROR, name, what)
    for left, right in files.gaps():
        missing = right.offset - left.end
        what = f"{missing} bytes are missing before this file: {left.path.name} ends at {left.end}"
        if missing < 0:
            what = f"this file begins before {left.path.name} ends at {left.end}"
        findings.add(FindingKind.FILE_GAP, Severity.ERROR, store.name_of(right.path), what)
