"""Unmodified clients of RocketMQ against our server, every scenario each; the matrix of docs/internals/interop.md."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.interop.client_kinds import CLIENTS, ClientKind, launch_of
from tests.interop.client_program import NotOffered
from tests.interop.led_client import LedClient, led_client
from tests.interop.matrix import FAIL, NONE, PASS, SKIPPED, Cell, record
from tests.interop.scenarios import SCENARIOS

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

# Lines of the ledger that a scenario would not pass without.
REQUIREMENTS = {
    "send-sync": ["C047"],
    "send-delayed": ["A048", "A050", "C135"],
    "push-concurrent": ["C006", "C007"],
    "push-orderly": ["C146"],
    "tag-filter": ["C002"],
    "broadcast": ["A066"],
    "rebalance": ["C008"],
    "retry": ["A083"],
}
CASES = [pytest.param(name, marks=pytest.mark.requirement(*REQUIREMENTS.get(name, []))) for name in SCENARIOS]


@dataclass(frozen=True)
class Seat:
    """A client of the matrix, led; or why it is not there."""

    kind: ClientKind
    led: LedClient | None
    reason: str = ""


@pytest.fixture(scope="module", params=CLIENTS, ids=str)
def seat(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    kind: ClientKind = request.param
    launch = launch_of(kind)
    if isinstance(launch, str):
        yield Seat(kind, None, launch)
        return
    with led_client(launch, tmp_path_factory.mktemp(str(kind))) as led:
        yield Seat(kind, led)


@pytest.mark.parametrize("scenario", CASES)
def test_an_unmodified_client_notices_no_difference(seat: Seat, scenario: str) -> None:
    if seat.led is None:
        record(str(seat.kind), scenario, Cell(SKIPPED, seat.reason))
        pytest.skip(f"no {seat.kind} client: {seat.reason}")
    try:
        seat.led.run(scenario)
    except NotOffered as reason:
        record(str(seat.kind), scenario, Cell(NONE, str(reason)))
    except BaseException as failure:
        record(str(seat.kind), scenario, Cell(FAIL, str(failure)[:300]))
        seat.led.restart()
        raise
    else:
        record(str(seat.kind), scenario, Cell(PASS))
