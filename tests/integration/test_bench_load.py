"""The load generator: its figures add up against a real server, its histogram and pacing are right."""

import json
import math
import re
import socket
from pathlib import Path

import pytest
from bench.load.__main__ import main
from bench.load.histogram import Histogram
from bench.load.measure import LoadFailed, Timing, measure
from bench.load.own_server import own_server
from bench.load.pacing import OpenLoop
from bench.load.report import complaints
from bench.load.request_frames import FIRST_OPAQUE, PullFrame, SendFrame
from bench.load.scenario import PULL, SEND, Scenario
from bench.load.server_usage import pids_listening_on
from bench.load.worker import OPEN_LOOP_WINDOW
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.format.batch import decode_batch
from skyrocket.protocol.frames import FrameReader

SHORT = Timing(warm_up=0.1, measured=0.6)
QUEUES = 4
BUSY = re.compile(r"busy|were due and could not be sent")  # the machine has other things to do


def test_what_is_acknowledged_is_what_can_be_pulled_and_the_figures_are_sane(tmp_path: Path) -> None:
    with own_server(work=tmp_path) as server:
        assert pids_listening_on(server.broker[1]) == [server.pid]

        def send(**how: object) -> Scenario:
            fields = {"connections": 8, "queues": QUEUES, **how}
            return Scenario(SEND, server.broker, "Load", **fields)  # type: ignore[arg-type]

        one_by_one = measure(send(), SHORT, 1, [server.pid])
        pipelined = measure(send(window=8, body_size=1024), SHORT, 2, [server.pid])
        batches = measure(send(batch=16), SHORT, 1, [server.pid])
        open_loop = measure(send(rate=200.0), SHORT, 2, [server.pid])
        pull = Scenario(PULL, server.broker, "Load", connections=QUEUES, queues=QUEUES, repeat_pulls=False)
        pulled = measure(pull, Timing(0.0, 4.0), 1, [server.pid])

    sent = (one_by_one, pipelined, batches, open_loop)
    assert sum(figures.acknowledged for figures in sent) == pulled.acknowledged
    for figures in (*sent, pulled):
        assert not [each for each in complaints(figures) if not BUSY.search(each)]
        assert 0 < figures.messages <= figures.acknowledged
        assert 0 < figures.p50_ms <= figures.p99_ms <= figures.p999_ms <= figures.largest_ms * 1.01
        assert figures.rate == pytest.approx(figures.messages / figures.seconds)
        assert figures.server_cpu_us is not None
        assert figures.server_cpu_us < 1e6 / figures.rate * 64
        assert figures.anonymous_mb is not None
        assert figures.private_mb is not None
        assert 1 < figures.anonymous_mb <= figures.private_mb
    assert batches.messages == 16 * batches.requests
    assert 0 < open_loop.rate < 400  # 200 were asked for; the machine may be busy


def test_refusals_are_counted_and_not_taken_for_messages(tmp_path: Path) -> None:
    with own_server(["autoCreateTopicEnable=false"], tmp_path) as server:
        scenario = Scenario(SEND, server.broker, "Unknown", connections=2)
        figures = measure(scenario, Timing(0.0, 0.3), 1, [server.pid])
    assert figures.messages == figures.acknowledged == 0
    assert any(text.startswith("code 17:") for text in figures.errors)


def test_a_server_that_is_not_there_is_said_plainly() -> None:
    with pytest.raises(LoadFailed, match=r"no connection to 127\.0\.0\.1:1: .*refused"):
        measure(Scenario(SEND, ("127.0.0.1", 1), "Load"), SHORT, 1, [])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--broker", "127.0.0.1"], "needs HOST:PORT"),
        (["--start", "sing"], "there are send, send-1k"),
        (["--start", "--rate", "0"], "above 0"),
        (["send"], "--broker --start is required"),
    ],
)
def test_wrong_options_are_refused_with_the_next_step(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2
    assert complaint in capsys.readouterr().err


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_patched_frame_is_a_whole_request_with_a_key_of_its_own() -> None:
    single = SendFrame("T%opic", 3, 8, 128, 1, "red")
    batch = SendFrame("T%opic", 3, 8, 100, 16, "")
    pull = PullFrame("T%opic", 3, 32)
    data = single.patched(7, 1_700_000_000_000, 2) + batch.patched(0x10, 1_700_000_000_001, 63)
    commands = FrameReader().receive(data + pull.patched(0, 0) + pull.patched(123_456, 1))
    assert [command.opaque - FIRST_OPAQUE for command in commands] == [2, 63, 0, 1]
    one, many, first, later = commands
    assert one.ext_fields is not None
    assert many.ext_fields is not None
    assert one.ext_fields["b"] == "T%opic"
    assert one.ext_fields["g"] == "1700000000000"
    assert one.ext_fields["i"].startswith("UNIQ_KEY\x01")
    assert "00000007\x02" in one.ext_fields["i"]
    assert len(one.body) == 128
    properties = [element.properties for element in decode_batch(many.body)]
    assert len(set(properties)) == 16
    assert [(command.ext_fields or {})["queueOffset"] for command in (first, later)] == ["0", "123456"]


@given(st.lists(st.floats(1e-7, 100.0), min_size=1, max_size=300), st.floats(1.0, 100.0))
def test_percentiles_of_the_histogram_are_within_one_percent(seconds: list[float], percent: float) -> None:
    halves = Histogram(), Histogram()
    halves[0].add(seconds[::2])
    halves[1].add(seconds[1::2])
    merged = Histogram.from_json(json.loads(json.dumps(halves[0].as_json())))
    merged.merge(halves[1])
    exact = sorted(seconds)[max(math.ceil(len(seconds) * percent / 100), 1) - 1]
    assert len(merged) == len(seconds)
    assert merged.percentile(percent) == pytest.approx(exact, rel=0.01)
    assert merged.largest == pytest.approx(max(seconds))


def test_an_open_loop_charges_a_stall_to_every_request_that_was_due_meanwhile() -> None:
    pacing = OpenLoop(first_at=10.0, interval=0.01)
    assert pacing.start_of_next(9.999) is None
    stalled_until = 11.0
    assert pacing.overdue(stalled_until) == pytest.approx(101, abs=1)
    starts = []
    while (start := pacing.start_of_next(stalled_until)) is not None:
        starts.append(start)
    waited = [stalled_until - start for start in starts]
    assert len(waited) == pytest.approx(101, abs=1)
    assert max(waited) == pytest.approx(1.0)
    assert sum(waited) / len(waited) == pytest.approx(0.5, abs=0.01)
    assert pacing.overdue(stalled_until) == 0


def test_an_open_loop_beyond_the_servers_power_says_what_could_not_be_sent() -> None:
    """A server that takes connections and never answers: slots run out, the schedule goes on."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        scenario = Scenario(SEND, silent.getsockname()[:2], "Load", connections=1, rate=20_000.0)
        figures = measure(scenario, Timing(0.0, 0.5), 1, [])
    assert figures.messages == figures.acknowledged == 0
    assert figures.unanswered == OPEN_LOOP_WINDOW
    assert figures.overdue > 20_000 * 0.5 / 2
    assert figures.server_cpu_us is None
