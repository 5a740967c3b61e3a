"""`skyrocket console` and the console of `standalone` as programs."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from skyrocket.console.core.settings import DEFAULT_PORT
from tests.integration.program import Program, Standalone, output_of
from tests.ports import free_port


def test_a_standalone_prints_its_console_and_another_console_looks_at_the_same_cluster(tmp_path: Path) -> None:
    (tmp_path / "schemas.toml").write_text("[[schema]]\ntopics = '*'\nregistry = 'http://127.0.0.1:1'\n")
    schemas = ("--console-schemas", str(tmp_path / "schemas.toml"))
    with Standalone(tmp_path, arguments=("--console-port", "0", *schemas)) as servers:
        own = servers.await_line(r"Console: (http://127\.0\.0\.1:\d+)/#token=(\S+)")
        overview = httpx.get(f"{own[1]}/api/overview", timeout=30).json()
        login = {"token": own[2]}
        entered = httpx.post(f"{own[1]}/api/login", json=login, headers={"X-Skyrocket-Csrf": "login"}, timeout=30)
        arguments = ("--port", "0", "--data", str(tmp_path / "other.db"), "-n", servers.name_server, "--private")
        with Program("console", *arguments, home=tmp_path) as other:
            address = other.await_line(r"console: (http://127\.0\.0\.1:\d+/)#token=")[1]
            private = httpx.get(f"{address}api/overview", timeout=30)
            assert other.stop() == 0
            assert other.lines[-1] == "The console has stopped."
        assert servers.stop() == 0
    assert [broker["is_up"] for broker in overview["brokers"]] == [True]
    assert entered.status_code == 200
    assert private.status_code == 401
    assert (tmp_path / "store" / "config" / "console.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("command", "arguments", "option"),
    [
        ("standalone", ("--namesrv-port", "0", "--listen-port", "0", "--console-port"), "--console-port"),
        ("console", ("--data", "c.db", "--port"), "--port"),
    ],
)
def test_a_chosen_port_that_is_taken_is_named_and_nothing_is_begun(
    tmp_path: Path, command: str, arguments: tuple[str, ...], option: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = output_of(command, *arguments, port, home=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"port {port} is taken by another program: stop it, or choose another port with {option}" in done.stderr


def test_a_wrong_file_of_schemas_is_named_and_nothing_is_begun(tmp_path: Path) -> None:
    (tmp_path / "schemas.toml").write_text("[[schema]]\ntopics = 'Orders'\nfile = 'none.avsc'\n")
    file = str(tmp_path / "schemas.toml")
    usual = ("--namesrv-port", "0", "--listen-port", "0", "--console-port", "0")
    for arguments in (
        ("standalone", *usual, "--console-schemas", file),
        ("console", "--data", "c.db", "--port", "0", "--schemas", file),
    ):
        done = output_of(*arguments, home=tmp_path)
        assert done.returncode != 0
        assert done.stdout == ""
        assert "none.avsc cannot be read: No such file or directory; check its path" in done.stderr


def test_a_standalone_whose_usual_port_for_pages_is_taken_says_so_and_runs(tmp_path: Path) -> None:
    """Nobody chose 8082: a second standalone of the machine is as welcome as the first."""
    with usual_port_taken(), Standalone(tmp_path, arguments=("--listen-port", str(free_port()))) as servers:
        servers.await_line(rf"warning: no console: .*port {DEFAULT_PORT} is taken.*--console-port.*--no-console")
        assert servers.stop() == 0


@contextlib.contextmanager
def usual_port_taken() -> Iterator[None]:
    """By this test, or by somebody on this machine."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            held.enter_context(socket.create_server(("127.0.0.1", DEFAULT_PORT)))
        yield


def test_a_console_without_a_cluster_starts_and_its_pages_name_the_cause(tmp_path: Path) -> None:
    arguments = ("--port", "0", "--data", str(tmp_path / "c.db"), "-n", "127.0.0.1:1")
    with Program("console", *arguments, home=tmp_path) as alone:
        address = alone.await_line(r"console: (http://127\.0\.0\.1:\d+/)#token=")[1]
        answer = httpx.get(f"{address}api/overview", timeout=30)
        assert alone.stop() == 0
    assert answer.status_code == 502
    assert "127.0.0.1:1" in answer.json()["error"]


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with Program("console", "--cert", "x.pem", home=tmp_path) as program:
        assert program.process.wait(60) == 2
        program.await_line("--cert and --cert-key belong together")
