"""Repairs by hand: what would be done, that it is done, and that nothing else is lost."""

from pathlib import Path

from typer.testing import CliRunner

from skyrocket.cli.commands import app
from skyrocket.format.record import decode_records
from skyrocket.inspector.settings import inspection_settings
from skyrocket.repair.perform import perform
from skyrocket.repair.plan import Action, plan_repair
from skyrocket.store.message_store import MessageStore
from tests.unit.store.stores import TOPIC, Stores, files_under, put

SETTINGS = inspection_settings(None, ["maxHashSlotNum=50", "maxIndexNum=1000"])


def filled(stores: Stores, count: int = 400) -> tuple[Path, list[int]]:
    """A closed store of several log files, and where its records of queue 0 stand."""
    store = stores.open()
    places = []
    for number in range(count):
        places.append(put(store, b"%06d" % number + bytes(300), properties={"KEYS": f"k{number}"}).physical_offset)
        put(store, b"%06d" % number + bytes(100), queue_id=1)
    store.close()
    return stores.root / "store", places


def flip(root: Path, place: int, mask: int = 0xFF) -> None:
    path = root / "commitlog" / f"{place - place % 65_536:020d}"
    content = bytearray(path.read_bytes())
    content[place % 65_536] ^= mask
    path.write_bytes(content)


def numbers(store: MessageStore, queue_id: int) -> list[int]:
    found: list[int] = []
    offset = 0
    while offset < store.max_offset(TOPIC, queue_id):
        result = store.get(TOPIC, queue_id, offset)
        found += [message.queue_offset for message in decode_records(result.join())]
        assert result.next_offset > offset
        offset = result.next_offset
    return found


def test_a_store_in_order_needs_no_repair(stores: Stores) -> None:
    root, _ = filled(stores, 50)
    before = files_under(root)
    plan = plan_repair(root, SETTINGS)
    assert (plan.steps, plan.left) == ([], [])
    assert files_under(root) == before


def test_a_damaged_record_costs_itself_alone(stores: Stores) -> None:
    root, places = filled(stores)
    flip(root, places[100] + 4)  # its magic
    plan = plan_repair(root, SETTINGS)
    assert [step.action for step in plan.steps if step.action is Action.FILL] == [Action.FILL]
    assert f"physical offset {places[100]}" in plan.steps[0].why
    kept, _ = perform(plan)
    assert (kept / f"{places[100]:020d}").read_bytes()[4:8] != b"\0\0\0\0"
    store = stores.open()
    assert numbers(store, 0) == [number for number in range(400) if number != 100]
    assert numbers(store, 1) == list(range(400))


def test_damage_over_the_end_of_a_file_costs_what_it_covers(stores: Stores) -> None:
    root, places = filled(stores)
    path = root / "commitlog" / f"{65_536:020d}"
    content = bytearray(path.read_bytes())
    content[-1000:] = b"\xee" * 1000
    path.write_bytes(content)
    perform(plan_repair(root, SETTINGS))
    store = stores.open()
    lost = set(range(400)) - set(numbers(store, 0))
    assert 1 <= len(lost) <= 4
    assert all(2 * 65_536 - 2000 < places[number] < 2 * 65_536 for number in lost)


def test_swapped_queues_are_built_anew(stores: Stores) -> None:
    root, places = filled(stores)
    queues = root / "consumequeue" / TOPIC
    for old, new in (("0", "aside"), ("1", "0"), ("aside", "1")):
        (queues / old).rename(queues / new)
    plan = plan_repair(root, SETTINGS)
    assert {step.target for step in plan.steps} == {f"consumequeue/{TOPIC}/0", f"consumequeue/{TOPIC}/1"}
    kept, _ = perform(plan)
    assert (kept / "consumequeue" / TOPIC / "0").is_dir()
    store = stores.open()
    assert [m.physical_offset for m in decode_records(store.get(TOPIC, 0, 7, 3).join())] == places[7:10]
    assert numbers(store, 1) == list(range(400))


def test_the_command_says_first_what_it_would_do(stores: Stores) -> None:
    root, places = filled(stores)
    flip(root, places[100] + 4)
    before = files_under(root)
    options = ["--set", "maxHashSlotNum=50", "--set", "maxIndexNum=1000"]
    said = CliRunner().invoke(app, ["repair", str(root), "--plan", *options])
    assert said.exit_code == 0, said.output
    assert str(places[100]) in said.output
    assert files_under(root) == before
    done = CliRunner().invoke(app, ["repair", str(root), *options])
    assert done.exit_code == 0, done.output
    assert "skyrocket.repaired" in done.output
    assert CliRunner().invoke(app, ["inspect", "--verify", str(root), *options]).exit_code == 0
