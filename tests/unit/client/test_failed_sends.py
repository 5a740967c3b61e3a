"""What a failed send says of its attempts."""

from skyrocket.client.core.errors import Attempt, SendFailed
from skyrocket.protocol.errors import NoPermission, SystemBusy


def test_what_several_attempts_in_a_row_have_met_is_told_once() -> None:
    attempts = [
        Attempt("broker-a", "127.0.0.1:10911", 0.001, SystemBusy("[QUOTA] account alice: retry in 498 ms")),
        Attempt("broker-b", "127.0.0.1:10921", 0.002, SystemBusy("[QUOTA] account alice: retry in 446 ms")),
        Attempt("broker-a", "127.0.0.1:10911", 0.003, NoPermission("no")),
    ]
    text = str(SendFailed("Orders", attempts, 0.163))
    assert "3 attempts: 1) broker-a after 1 ms; 2) broker-b after 2 ms: code 2 SYSTEM_BUSY, [QUOTA] account" in text
    assert "; 3) broker-a after 3 ms: code 16 NO_PERMISSION, no" in text
    assert "498" not in text
