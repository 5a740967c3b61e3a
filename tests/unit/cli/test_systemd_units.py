"""The units of deploy/systemd: systemd takes them, and they say nothing that the program does not know."""

import configparser
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from skyrocket.cli.commands import load
from skyrocket.cli.program.systemd import tell_systemd
from tests import ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def service_of(unit: Path) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    return parser["Service"]


def test_there_is_a_unit_for_each_server() -> None:
    assert [unit.name for unit in UNITS] == [
        "skyrocket-broker@.service",
        "skyrocket-controller.service",
        "skyrocket-namesrv.service",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_what_the_program_has(unit: Path) -> None:
    service = service_of(unit)
    program, command, *arguments = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/skyrocket")
    assert load(command).make_context(command, arguments).info_name == command
    assert service["Type"] == "notify"
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2", "wrong settings would be tried every five seconds for ever"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_a_unit(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: the units were not verified")
    # The program need not be installed here: one that is stands for it.
    name = unit.name.replace("@.", "@broker-a.")
    text = unit.read_text().replace("/opt/skyrocket/bin/skyrocket", "/bin/true").replace("%i", "broker-a")
    (tmp_path / name).write_text(text)
    seen = subprocess.run([analyze, "verify", tmp_path / name], capture_output=True, text=True, timeout=60)
    complaints = [line for line in seen.stderr.splitlines() if unit.stem.rstrip("@") in line]
    assert complaints == []


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        tell_systemd("READY=1")
        assert listening.recv(100) == b"READY=1"
    tell_systemd("STOPPING=1")  # nobody listens: that is systemd's matter


def test_without_systemd_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    tell_systemd("READY=1")
