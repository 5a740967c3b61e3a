"""A process that writes into our store until it is killed; each line on standard output is an acknowledged put.

python -m tests.interop.writer STORE_DIRECTORY VERSION SEED
"""

import json
import sys
from pathlib import Path

from tests.interop.our_store import opened, put, store_placement
from tests.interop.samples import SMALL_FILES, samples_for_rocketmq

WRITER_MESSAGES = 5000


def main(path: str, version: str, seed: str) -> None:
    with opened(Path(path), SMALL_FILES) as store:
        for number, draft in enumerate(samples_for_rocketmq(version, count=WRITER_MESSAGES, seed=int(seed))):
            line = {"number": number, **store_placement(put(store, draft))}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
