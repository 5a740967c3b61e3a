"""The client alone: what it needs to be installed, how large that is, and that nothing else is imported."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests import ROOT

OF_SERVERS = ("numpy", "yaml", "zstandard")
OF_COMMANDS = ("click", "rich", "typer", "uvloop")
OTHERS = ("fastavro", "google", "msgspec", "prometheus_client", "pyarrow", "pydantic", "pyspark")
MOST_MB = 25.0
# Without `site`: a .pth of an editable install, or of a tool, would import things of its own.
WITH_PACKAGES = f"import sys; sys.path += {[path for path in sys.path if 'site-packages' in path]!r}\n"

PROGRAM = """
import asyncio
from dataclasses import dataclass

from skyrocket import Admin, ConsumeFromWhere, Producer, PushConsumer, PushConsumerSettings
from skyrocket import LitePullConsumer, SimpleConsumer, TransactionProducer, blocking


@dataclass
class Order:
    number: int


async def main():
    got = asyncio.get_running_loop().create_future()
    first = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = PushConsumer("Billing", settings=first)

    @consumer.on("Orders")
    async def order(body: Order) -> None:
        got.set_result(body)

    async with Producer("Shop") as producer, consumer, Admin() as admin:
        await producer.send("Orders", Order(7))
        print(await asyncio.wait_for(got, 60), "Orders" in await admin.topics())


asyncio.run(main())
"""


def without(folder: Path, *libraries: str) -> dict[str, str]:
    """An environment in which these are not installed."""
    for name in libraries:
        text = f"raise ModuleNotFoundError(\"No module named '{name}'\", name={name!r})\n"
        (folder / f"{name}.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_the_client_works_without_the_libraries_of_servers_and_commands(tmp_path: Path, rocketmq: LocalCluster) -> None:
    environment = without(tmp_path, *OF_SERVERS, *OF_COMMANDS, *OTHERS) | {"NAMESRV_ADDR": rocketmq.name_server_address}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=100, cwd=tmp_path
    )
    assert done.stdout == "Order(number=7) True\n", done.stderr


@pytest.mark.parametrize(
    ("missing", "command", "said"),
    [
        (OF_COMMANDS, ("--version",), "only the client is installed, without commands: pip install 'skyrocket[cli]'"),
        (
            OF_SERVERS,
            ("broker", "--store", "here", "--listen-port", "0"),
            "skyrocket broker needs numpy: pip install 'skyrocket[server]'",
        ),
        (OF_SERVERS, ("worker", "nowhere:consumer"), "skyrocket worker: there is no module nowhere in "),
    ],
)
def test_a_command_whose_libraries_are_missing_says_what_to_install(
    tmp_path: Path, missing: tuple[str, ...], command: tuple[str, ...], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skyrocket", *command],
        env=without(tmp_path, *missing),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert (said in done.stderr, done.returncode) == (True, 1 if missing is OF_COMMANDS else 2), done.stderr


IMPORT = """
import sys, time
began = time.process_time()
from skyrocket import Message, Producer, PushConsumer
spent = time.process_time() - began
print(spent, *sorted(sys.modules))
"""
NEVER_AT_ONCE = (
    *(*OF_SERVERS, *OF_COMMANDS, *OTHERS),
    *("pathlib", "urllib.parse", "http.client", "hashlib", "multiprocessing"),
    "skyrocket.client.admin.admin",
    "skyrocket.client.consumer.local_offsets",
    "skyrocket.client.consumer.other_allocations",
    "skyrocket.model.subscription_group",
    "skyrocket.protocol.requests.admin_groups",
)


def test_importing_the_client_loads_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its time is printed, not judged: the machine is busy. What makes it short is judged."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: compiled once
    spent = []
    for _ in range(6):
        done = subprocess.run(
            [sys.executable, "-S", "-c", WITH_PACKAGES + IMPORT], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        seconds, *modules = done.stdout.split()
        spent.append(float(seconds))
    ours = sum(name.startswith("skyrocket") for name in modules)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nimporting the client costs {min(spent[1:]):.3f} s of CPU (best of {len(spent) - 1}; with compiling "
            f"{spent[0]:.3f} s), {len(modules)} modules, {ours} of them ours"
        )
    assert [name for name in NEVER_AT_ONCE if name in modules] == []


def test_the_light_install_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w-]", text)[0] for text in project["dependencies"]}
    assert names == {"isal", "lz4", "orjson"}
    sizes = {"skyrocket": sum(path.stat().st_size for path in (ROOT / "src").rglob("*.py"))}
    for name in names:
        found = importlib.metadata.distribution(name)
        assert not [text for text in found.requires or () if "extra ==" not in text], f"{name} brings others along"
        sizes[name] = sum(
            Path(str(file.locate())).stat().st_size for file in found.files or () if file.suffix != ".pyc"
        )
    total = sum(sizes.values()) / 1e6
    with capsys.disabled():
        listed = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sorted(sizes.items()))
        print(f"\nthe client alone takes {total:.1f} MB: {listed}")  # noqa: T201
    assert total <= MOST_MB
