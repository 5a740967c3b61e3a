"""A store to look at: unpacks one that RocketMQ 5.4.0 wrote into var/sample-store, unless it is there already.

`make inspect` calls this before `skyrocket inspect var/sample-store`.
"""

import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
ARCHIVE = ROOT / "tests" / "golden" / "5.4.0" / "clean" / "store.tar.xz"


def main(target: Path) -> None:
    """Make the sample store; a half-unpacked one never gets the final name."""
    if target.exists():
        return
    unpacking = target.with_name(f".{target.name}.unpacking")
    unpacking.mkdir(parents=True, exist_ok=True)
    with tarfile.open(ARCHIVE) as archive:
        # As an attribute: the argument of this name is younger than Python 3.11.2, that of Debian 12.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(unpacking)
    unpacking.rename(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "var" / "sample-store")
