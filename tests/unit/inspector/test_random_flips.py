"""Every flipped bit in a record is found, unless it hits a field that nothing protects."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyrocket.format.crc import CRC_PROPERTY_BYTES
from skyrocket.format.record import RecordHead
from tests.unit.inspector.conftest import Unpacked
from tests.unit.inspector.damage import DamagedStore
from tests.unit.inspector.record_fields import UNPROTECTED, field_of

LOG = "commitlog/00000000000000000000"
STORES = [("4.9.7", "ipv6"), ("5.4.0", "ipv6"), ("5.4.0", "lmq"), ("5.4.0", "cqext"), ("5.4.0", "crc")]


class Flipper:
    """One small store, damaged and healed again for each example."""

    def __init__(self, source: Path, root: Path) -> None:
        shutil.copytree(source, root, copy_function=os.link)
        self.store = DamagedStore(root)
        self.store.path("timerwheel").unlink(missing_ok=True)
        self.data = self.store.read(LOG)
        self.records: list[RecordHead] = self.store.log_records(LOG)

    def finds(self, position: int, bit: int) -> bool:
        self.store.replace(LOG, self.data)
        self.store.flip(LOG, position, bit)
        return self.store.verify().has_problems()


@pytest.fixture(scope="module", params=STORES, ids="/".join)
def flipper(request: pytest.FixtureRequest, unpacked: Unpacked, tmp_path_factory: pytest.TempPathFactory) -> Flipper:
    return Flipper(unpacked(*request.param), tmp_path_factory.mktemp("flips") / "store")


@pytest.mark.requirement("A025")
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(choice=st.data())
def test_a_flip_in_a_protected_field_is_found(flipper: Flipper, choice: st.DataObject) -> None:
    head = choice.draw(st.sampled_from(flipper.records))
    byte = choice.draw(st.integers(0, head.size - 1))
    bit = choice.draw(st.integers(0, 7))
    field = field_of(flipper.data, head.physical_offset, head, byte)
    sealed = b"__CRC32#" in head.properties and byte < head.size - CRC_PROPERTY_BYTES
    if sealed or field not in UNPROTECTED:
        assert flipper.finds(head.physical_offset + byte, bit), f"bit {bit} of byte {byte}, in the {field}"


@pytest.mark.parametrize("bit", [2, 4, 5])
def test_bits_of_sys_flag_that_change_layout_or_dispatch_are_found(flipper: Flipper, bit: int) -> None:
    for head in flipper.records[:3]:
        assert flipper.finds(head.physical_offset + 39, bit)


def test_a_store_time_is_protected_to_the_second(flipper: Flipper) -> None:
    for head in flipper.records[2:5]:
        born_host_bytes = 20 if head.sys_flag & 0x10 else 8
        store_time_at = head.physical_offset + 48 + born_host_bytes
        assert all(flipper.finds(store_time_at + byte, bit) for byte, bit in [(2, 0), (4, 7), (5, 0), (6, 3)])
