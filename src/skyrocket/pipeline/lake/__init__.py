"""A lake of Parquet files with its own bookkeeping: which files belong to it, and which bytes of which log they hold.

```
lake/
├── topic=Orders/dt=2026-11-16/broker-a-00000000000000000000-00000000000268435456.parquet
└── _skyrocket/                      Spark and pyarrow skip names that begin with an underscore
    ├── versions/00000000000000000007.json     one published change each; together they are the truth
    ├── snapshots/00000000000000000050.json    their sum, now and then, so that reading stays short
    ├── pending/broker-a.json                  a change that is being published: rolled forward after a crash
    ├── locks/broker-a.lock                    one writer per broker
    └── staging/broker-a/…                     what tasks write before it is published
```
"""

from skyrocket.pipeline.lake.files import LakeBusy
from skyrocket.pipeline.lake.manifest import Change, Gap, LakeFile, LakeState
from skyrocket.pipeline.lake.versions import Lake
from skyrocket.pipeline.lake.writer import LakeWriter, check_writable, lake_writer

__all__ = [
    "Change",
    "Gap",
    "Lake",
    "LakeBusy",
    "LakeFile",
    "LakeState",
    "LakeWriter",
    "check_writable",
    "lake_writer",
]
