"""Apache's mqadmin, and Apache's broker alone: for tests in which the name server is ours."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.interop.apache import JAVA_SOURCES, Apache
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.rocketmq_store import complaints_in, settings_for
from tests.interop.samples import SMALL_FILES
from tests.ports import free_port

ADMIN_TIMEOUT_S = 120
BROKER_NAME = "broker-a"


def admin_output(apache: Apache, commands: list[str]) -> dict[str, str]:
    """What mqadmin prints for each command; no command twice."""
    return dict(zip(commands, admin_outputs(apache, commands), strict=True))


def admin_outputs(
    apache: Apache,
    commands: list[str],
    timeout_s: float = ADMIN_TIMEOUT_S,
    account: tuple[str, str] | None = None,
) -> list[str]:
    """What mqadmin prints for each command, in turn; "for 5 clusterRT …" ends a command that never ends by itself."""
    with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as home:
        (Path(home) / "conf").mkdir()
        shutil.copy(JAVA_SOURCES / "logback.xml", Path(home) / "conf" / "logback_tools.xml")
        if account is not None:  # which it signs with
            (Path(home) / "conf" / "tools.yml").write_text(f"accessKey: {account[0]}\nsecretKey: '{account[1]}'\n")
        stdin = "".join(f"{command}\n" for command in commands)
        done = apache.run("AdminCommands", home, stdin=stdin, timeout_s=timeout_s, log_level="OFF")
    if done.exit_code != 0:
        raise AssertionError("mqadmin failed:\n" + "\n".join(complaints_in(done.stdout + done.stderr)[-60:]))
    parts = ("\n" + done.stdout).split("\n== ")[1:]
    printed = [part.partition("\n")[::2] for part in parts]
    assert [command for command, _ in printed] == commands, done.stdout
    return [text for _, text in printed]


@contextlib.contextmanager
def running_apache_broker(apache: Apache, store: Path, name_servers: str) -> Iterator[str]:
    """A broker that registers at these name servers; its address."""
    with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as scratch:
        home = Path(scratch)
        place_log_settings(home)
        port = free_port()
        settings = {
            "brokerClusterName": "DefaultCluster",
            "brokerName": BROKER_NAME,
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": name_servers,
            "listenPort": port,
            "haListenPort": port + 1,
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            "diskMaxUsedSpaceRatio": 95,
            **settings_for(apache, SMALL_FILES),
        }
        with process_of(apache, home, "broker", "org.apache.rocketmq.broker.BrokerStartup", settings) as process:
            await_port(process, port, home / "broker.log")
            yield f"127.0.0.1:{port}"
