"""A store in which damage is planted, and what the verification says about it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from skyrocket.format.record import RecordHead, RecordWalk
from skyrocket.inspector.findings import Finding, FindingKind, Severity
from skyrocket.inspector.settings import inspection_settings
from skyrocket.inspector.verify import Verification, verify
from skyrocket.offline.store_files import find_store_files


@dataclass(frozen=True)
class DamagedStore:
    """Files are links to the golden ones: every change makes its own file first."""

    root: Path

    def path(self, file: str) -> Path:
        return self.root / file

    def files(self, directory: str) -> list[str]:
        """The files below a directory, in order."""
        found = sorted(path for path in self.path(directory).rglob("*") if path.is_file())
        return [path.relative_to(self.root).as_posix() for path in found]

    def read(self, file: str) -> bytes:
        return self.path(file).read_bytes()

    def replace(self, file: str, data: bytes) -> None:
        path = self.path(file)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def write(self, file: str, position: int, data: bytes) -> None:
        old = self.read(file)
        self.replace(file, old[:position] + data + old[position + len(data) :])

    def flip(self, file: str, position: int, bit: int = 0) -> None:
        self.write(file, position, bytes([self.read(file)[position] ^ 1 << bit]))

    def delete(self, name: str) -> None:
        path = self.path(name)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def log_records(self, file: str) -> list[RecordHead]:
        """The records of a commit-log file."""
        return list(RecordWalk(self.read(file), int(Path(file).name)))

    def verify(self, *settings: str) -> Verification:
        return verify(find_store_files(self.root), inspection_settings(None, list(settings)))

    def errors(self, *settings: str) -> list[Finding]:
        return [finding for finding in self.verify(*settings).findings if finding.severity is Severity.ERROR]

    def assert_found(self, kind: FindingKind, file: str, *settings: str) -> Finding:
        """The damage is an error of this kind that names this file."""
        errors = self.errors(*settings)
        matching = [finding for finding in errors if finding.kind is kind and finding.file == file]
        assert matching, f"{kind} in {file} not among {[(e.kind.code, e.file, e.what) for e in errors]}"
        return matching[0]
