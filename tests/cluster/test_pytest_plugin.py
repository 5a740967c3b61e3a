"""The fixtures as a user's tests find them, and what they cost those who do not use them."""

import os
import subprocess
import sys
from pathlib import Path

USERS_TESTS = """
import pytest

seen = []

def test_a_cluster_of_its_own(rocketmq):
    rocketmq.create_topic("Orders")
    seen.append(rocketmq.name_server_address)

def test_another_one(rocketmq):
    assert rocketmq.name_server_address not in seen
    assert rocketmq.messages("Orders") == []

@pytest.mark.rocketmq(brokers=2)
def test_two_brokers(rocketmq):
    assert rocketmq.broker_names == ["broker-a", "broker-b"]

def test_a_shared_cluster(rocketmq_session):
    seen.append((rocketmq_session, rocketmq_session.unique_topic("Orders"), rocketmq_session.unique_group()))

def test_the_same_cluster_with_other_names(rocketmq_session):
    shared, topic, group = seen.pop()
    assert rocketmq_session is shared
    assert rocketmq_session.unique_topic("Orders") != topic
    assert rocketmq_session.unique_group() != group
"""

STRANGERS_TESTS = """
import sys

def test_nothing_of_a_broker_is_loaded():
    assert "skyrocket.testing.plugin" in sys.modules
    heavy = {"numpy", "orjson", "asyncio", "skyrocket.broker", "skyrocket.client", "skyrocket.store"}
    assert not heavy & sys.modules.keys()
"""


def run_pytest(folder: Path, tests: str) -> str:
    (folder / "test_of_a_user.py").write_text(tests)
    done = subprocess.run(
        # Other plugins would load what this one must not.
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "-p", "skyrocket"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_fixtures_give_fresh_and_shared_clusters(tmp_path: Path) -> None:
    assert "5 passed" in run_pytest(tmp_path, USERS_TESTS)


def test_who_does_not_use_the_fixtures_does_not_load_a_broker(tmp_path: Path) -> None:
    assert "1 passed" in run_pytest(tmp_path, STRANGERS_TESTS)
