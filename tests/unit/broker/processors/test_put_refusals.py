"""What a producer hears for each outcome of a put."""

from pathlib import Path

import pytest

from skyrocket.broker.rules.put_refusals import put_refusal
from skyrocket.store.results import PutStatus


@pytest.mark.parametrize(
    ("status", "code", "remark"),
    [
        (PutStatus.FLUSH_DISK_TIMEOUT, 10, None),
        (PutStatus.SLAVE_NOT_AVAILABLE, 11, None),
        (PutStatus.FLUSH_SLAVE_TIMEOUT, 12, None),
        (PutStatus.CREATE_MAPPED_FILE_FAILED, 1, "create mapped file failed, server is busy or broken."),
        (
            PutStatus.PROPERTIES_SIZE_EXCEEDED,
            13,
            "the message is illegal, maybe msg body or properties length not matched. "
            "msg body length limit 4194304B, msg properties length limit 32KB.",
        ),
        (PutStatus.OS_PAGE_CACHE_BUSY, 2, "[PC_SYNCHRONIZED]broker busy, start flow control for a while"),
    ],
)
def test_codes_and_remarks_are_rocketmqs(status: PutStatus, code: int, remark: str | None, tmp_path: Path) -> None:
    error = put_refusal(status, 4 << 20, str(tmp_path))
    assert (error.code, error.remark) == (code, remark)


def test_a_store_that_takes_nothing_says_how_full_its_disk_is(tmp_path: Path) -> None:
    error = put_refusal(PutStatus.SERVICE_NOT_AVAILABLE, 1, str(tmp_path))
    assert error.code == 14
    assert error.remark is not None
    assert error.remark.startswith("service not available now. It may be caused by one of the following reasons: ")
    assert "[CL:  0." in error.remark
    assert "CL: -1.00" in (put_refusal(PutStatus.SERVICE_NOT_AVAILABLE, 1, "/no/such/place").remark or "")
