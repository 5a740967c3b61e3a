"""When a slave acts as master."""

import pytest

from skyrocket.broker.acting.decision import Members, should_act

BOTH, SLAVES, SECOND = {0: "m", 1: "s"}, {1: "s", 2: "t"}, {2: "t"}


@pytest.mark.parametrize(
    ("own_id", "told", "is_following", "acts", "expected"),
    [
        (1, [BOTH], False, False, False),  # its master is there
        (1, [SLAVES], False, False, True),  # it is not
        (2, [SLAVES], False, False, False),  # another slave has a smaller id
        (2, [SECOND], False, False, True),
        (1, [SLAVES, BOTH], False, False, False),  # one name server knows the master
        (1, [SLAVES, BOTH], False, True, False),
        (1, [SECOND], False, False, False),  # it is not registered itself
        (1, [SLAVES], True, False, False),  # the master is not registered, but its log comes
        (1, [SLAVES], True, True, True),  # a master that comes back offers its log before it works
        (1, [], False, False, False),  # nobody answers: as before
        (1, [], False, True, True),
        (1, [{}], False, True, True),
        (0, [{0: "m"}], False, False, False),  # a master is no slave
    ],
)
def test_a_slave_acts_while_it_has_the_smallest_id_and_no_master_is_there(
    own_id: int, told: list[Members], is_following: bool, acts: bool, expected: bool
) -> None:
    assert should_act(own_id, told, is_following=is_following, acts=acts) is expected
