"""mqadmin's view of our pair: how replication stands, as the tool of RocketMQ shows it."""

import re
from pathlib import Path

import pytest

from skyrocket.remoting.addresses import Address
from tests.interop.apache import Apache
from tests.interop.apache_admin import admin_output
from tests.interop.test_replication_pairs import BOOT, our_name_server, our_program

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


def test_ha_status_shows_both_ends(tmp_path: Path, apache: Apache) -> None:
    if apache.version.startswith("4."):
        pytest.skip("mqadmin 4.9 has no haStatus")
    with (
        our_name_server(tmp_path) as names,
        our_program(tmp_path, "master", "SYNC_MASTER", names) as master,
        our_program(tmp_path, "slave", "SLAVE", names, verbose=True) as slave,
    ):
        at_master, at_slave = master.await_line(BOOT)[1], slave.await_line(BOOT)[1]
        slave.await_line("following master=")
        shown = admin_output(
            apache,
            [f"haStatus -n {names} -b {at_master}", f"haStatus -n {names} -b {at_slave}", f"clusterList -n {names}"],
        )
        of_master, of_slave, cluster = shown.values()
        assert re.search(r"#MasterAddr\s+" + re.escape(at_master), of_master), of_master
        assert re.search(r"#SlaveNum\s+1\n#InSyncSlaveNum\s+1\n", of_master), of_master
        assert re.search(r"\n127\.0\.0\.1:\d+ +0 +0 +0\.00 +OK +0", of_master), of_master
        ha_address = Address.parse(at_master)
        assert re.search(rf"#MasterAddr\s+127\.0\.0\.1:{ha_address.port + 1}\n", of_slave), of_slave
        assert re.search(r"#LastReadTime\s+20\d\d-", of_slave), of_slave
        assert re.search(r"broker-a +0 +" + re.escape(at_master), cluster), cluster
        assert re.search(r"broker-a +1 +" + re.escape(at_slave), cluster), cluster
