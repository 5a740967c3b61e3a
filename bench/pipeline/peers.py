"""format("rocketmq") beside Spark's own format("kafka"): the same messages out of both servers, in one Spark session.

    python -m bench.pipeline --peers [--messages 400000] [--body 256] [--times 3]

Spark's Kafka source comes from Maven, for Spark 4.2.0 at the newest: so both sources run in that Spark, in a virtual
environment of their own (var/spark-peer), one after the other in every round. Kafka's broker is the one of
bench.python_clients; eight partitions here, eight queues there, the same key and body in each message.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from bench.load.own_server import own_server
from bench.peers.maven import classpath
from bench.pipeline.peers_program import QUEUES, TOPIC, Measured
from bench.pipeline.stream_source import fill
from bench.python_clients.kafka import running_kafka

_SPARK = "4.2.0"
_TOKEN_PROVIDER = "4.0.0"  # asked whether there is an account, and says no; not every registry has newer ones
_KAFKA_CLIENTS = "3.9.2"  # as that Spark's own build names them, as the pool
_POOL = "2.13.1"
_ROOT = Path(__file__).parent.parent.parent
_VENV = _ROOT / "var" / "spark-peer"
_PACKAGES = "isal lz4 numpy orjson pandas pyarrow uvloop zstandard".split()


def main(messages: int, body: int, times: int) -> None:
    """Measure and print."""
    python, jars = _python(), _connector()
    before = os.getloadavg()[0]
    with own_server() as ours, running_kafka({"num.partitions": QUEUES}) as kafka:
        names = "{}:{}".format(*ours.name_server)
        asyncio.run(fill(names, TOPIC, messages, body))
        given = {"names": names, "kafka": kafka.address, "jars": jars, "messages": messages, "body": body}
        given |= {"times": times, "servers": {"rocketmq": [ours.pid], "kafka": [kafka.pid]}}
        environment = {**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'src'}"}
        command = [str(python), "-m", "bench.pipeline.peers_program", json.dumps(given)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    print(table([Measured(**each) for each in json.loads(done.stdout.splitlines()[-1])], messages))
    print(f"\n{messages:,} messages of {body} bytes, medians of {times}, Spark {_SPARK}, local[2]")
    print(f"load average {before:.1f} before, {os.getloadavg()[0]:.1f} after")


def table(rows: list[Measured], messages: int) -> str:
    """As Markdown; the last column compares with Kafka's row of the same kind."""
    lines = [
        "| | source | rows/s | Spark's CPU s | server's CPU s | rate beside Kafka's |",
        "|---|---|---|---|---|---|",
    ]
    kafka = {row.way: row.seconds for row in rows if row.source == "kafka"}
    for row in rows:
        cells = [row.way, row.title, f"{messages / row.seconds:,.0f}", f"{row.spark_cpu:.2f}", f"{row.server_cpu:.2f}"]
        lines.append("| " + " | ".join([*cells, f"{kafka[row.way] / row.seconds:.2f}"]) + " |")
    return "\n".join(lines)


def _python() -> Path:
    """With that Spark and what our source imports; says what it does, for it takes minutes."""
    python = _VENV / "bin" / "python"
    if not python.exists():
        print(f"making {_VENV} with Spark {_SPARK} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(_VENV)], check=True)
    others = _VENV / "constraints.txt"
    kept = (_ROOT / "constraints.txt").read_text().splitlines()
    others.write_text("\n".join(line for line in kept if not line.startswith("pyspark==")))
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(others)]
    subprocess.run([*install, f"pyspark=={_SPARK}", *_PACKAGES], check=True)
    return python


def _connector() -> str:
    """Jars, with commas. Named one by one: Spark has the rest itself, and Maven would fetch a second Spark."""
    artifacts = [
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_SPARK}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{_TOKEN_PROVIDER}",
        f"org.apache.kafka:kafka-clients:{_KAFKA_CLIENTS}",
        f"org.apache.commons:commons-pool2:{_POOL}",
    ]
    return classpath(f"spark-kafka-{_SPARK}-alone", *artifacts, alone=True).replace(os.pathsep, ",")
