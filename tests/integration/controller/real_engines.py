"""ZooKeeper and etcd from Debian's packages as processes on free ports: one server, or three."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import httpx
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from skyrocket.remoting.self_signed import self_signed
from tests.ports import free_port
from tests.waiting import wait_until

JARS = Path("/usr/share/java")
# Debian's list of what ZooKeeper needs has no codec of Netty, which TLS wants; and without the last it is mute.
ZOOKEEPER_JARS = tuple(JARS / f"{name}.jar" for name in ("zookeeper", "netty-codec", "netty-all", "slf4j-simple"))
_MISSING = {
    "zookeeper": "no ZooKeeper here: apt-get install zookeeper",
    "etcd": "no etcd here: apt-get install etcd-server",
}


def why_not(kind: str) -> str | None:
    """Why an engine cannot be tested here; None: it can."""
    if kind == "etcd":
        return None if shutil.which("etcd") else _MISSING[kind]
    return None if shutil.which("java") and ZOOKEEPER_JARS[0].exists() else _MISSING[kind]


class EngineServer:
    """One process; it can be killed, stopped for a while, and started again on what it wrote."""

    def __init__(self, command: Sequence[str], port: int, log: Path) -> None:
        self.port = port
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self._log.parent
            )

    def await_answer(self) -> None:
        """Wait until it takes connections."""
        wait_until(self._listens, f"{self._command[0]} listens; its log is {self._log}")

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It says nothing more, and does not know."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class RealEngine(Protocol):
    """Some servers that are one engine."""

    kind: str
    servers: list[EngineServer]

    def leader(self) -> EngineServer:
        """The server that leads the others now."""
        ...


class Certificates(NamedTuple):
    """Files of a server's certificate; whoever connects must show the same."""

    certificate: Path
    private_key: Path


def certificates(folder: Path) -> Certificates:
    """For 127.0.0.1, signed by itself."""
    made = self_signed("127.0.0.1")
    key = load_pem_private_key(made.private_key, None)
    found = Certificates(folder / "server.pem", folder / "server.key")
    found.certificate.write_bytes(made.certificate)
    found.private_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "both.pem").write_bytes(found.private_key.read_bytes() + made.certificate)
    return found


def _zookeeper_port(port: int, tls: Certificates | None) -> str:
    if tls is None:
        return f"clientPort={port}\nclientPortAddress=127.0.0.1\n"
    return (
        f"secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\nssl.clientAuth=need\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={tls.certificate.parent / 'both.pem'}\nssl.keyStore.type=PEM\n"
        f"ssl.trustStore.location={tls.certificate}\nssl.trustStore.type=PEM\n"
        "ssl.hostnameVerification=false\n"
    )


class ZooKeeperEnsemble:
    """One or three ZooKeepers."""

    kind = "zookeeper"

    def __init__(self, folder: Path, size: int, tls: Certificates | None = None, settings: str = "") -> None:
        ports = [free_port() for _ in range(size)]
        peers = "".join(f"server.{number}=127.0.0.1:{free_port()}:{free_port()}\n" for number in range(1, size + 1))
        self.servers = []
        for number, port in enumerate(ports, 1):
            home = folder / f"zookeeper-{number}"
            (home / "data").mkdir(parents=True)
            (home / "data" / "myid").write_text(f"{number}\n")
            (home / "zoo.cfg").write_text(
                f"tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir={home / 'data'}\n"
                "admin.enableServer=false\n4lw.commands.whitelist=*\n"
                f"{settings}{_zookeeper_port(port, tls)}{peers if size > 1 else ''}"
            )
            command = ["java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dzookeeper.log.dir={home}"]
            command += [
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-cp",
                ":".join(map(str, ZOOKEEPER_JARS)),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            ]
            self.servers.append(EngineServer([*command, str(home / "zoo.cfg")], port, home / "log"))

    def leader(self) -> EngineServer:
        def leaders() -> list[EngineServer]:
            return [each for each in self.servers if self._leads(each)]

        wait_until(leaders, "one of them leads")
        return leaders()[0]

    @staticmethod
    def _leads(server: EngineServer) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=2) as line:
            line.settimeout(2)
            line.sendall(b"mntr")
            answer = b""
            while chunk := line.recv(65536):
                answer += chunk
            return b"zk_server_state\tleader" in answer or b"zk_server_state\tstandalone" in answer
        return False


class EtcdCluster:
    """One or three etcds."""

    kind = "etcd"

    def __init__(self, folder: Path, size: int, tls: Certificates | None = None) -> None:
        ports = [(free_port(), free_port()) for _ in range(size)]
        peers = ",".join(f"e{number}=http://127.0.0.1:{peer}" for number, (_, peer) in enumerate(ports))
        self.servers = []
        for number, (port, peer) in enumerate(ports):
            home = folder / f"etcd-{number}"
            home.mkdir(parents=True)
            command = ["etcd", "--name", f"e{number}", "--data-dir", str(home / "data"), "--logger", "zap"]
            scheme = "http" if tls is None else "https"
            command += ["--listen-client-urls", f"{scheme}://127.0.0.1:{port}"]
            command += ["--advertise-client-urls", f"{scheme}://127.0.0.1:{port}"]
            if tls is not None:
                command += ["--cert-file", str(tls.certificate), "--key-file", str(tls.private_key)]
                command += ["--client-cert-auth", "--trusted-ca-file", str(tls.certificate)]
            command += ["--listen-peer-urls", f"http://127.0.0.1:{peer}"]
            command += ["--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster", peers]
            command += ["--heartbeat-interval", "100", "--election-timeout", "1000"]
            self.servers.append(EngineServer(command, port, home / "log"))

    def leader(self) -> EngineServer:
        def leaders() -> list[EngineServer]:
            return [each for each in self.servers if self._leads(each)]

        wait_until(leaders, "one of them leads")
        return leaders()[0]

    @staticmethod
    def _leads(server: EngineServer) -> bool:
        try:
            answer = httpx.post(f"http://127.0.0.1:{server.port}/v3/maintenance/status", json={}, timeout=2).json()
        except httpx.HTTPError:
            return False
        return bool(answer.get("leader")) and answer["leader"] == answer["header"]["member_id"]


@contextlib.contextmanager
def running_engine(kind: str, folder: Path, size: int = 1, tls: Certificates | None = None) -> Iterator[RealEngine]:
    """All servers up; none is left."""
    with running(EtcdCluster(folder, size, tls) if kind == "etcd" else ZooKeeperEnsemble(folder, size, tls)) as engine:
        yield engine


@contextlib.contextmanager
def running(engine: RealEngine) -> Iterator[RealEngine]:
    """The same for one that was made before."""
    try:
        for server in engine.servers:
            server.start()
        for server in engine.servers:
            server.await_answer()
        yield engine
    finally:
        for server in engine.servers:
            server.kill()


def place_of(engine: RealEngine, folder: str = "skyrocket") -> str:
    """The value of controllerStore."""
    return f"{engine.kind}://{','.join(f'127.0.0.1:{each.port}' for each in engine.servers)}/{folder}"
