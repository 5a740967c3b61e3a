"""Whether a slave acts as master: what the name servers say, and what it sees itself."""

from collections.abc import Mapping, Sequence

Members = Mapping[int, str]  # of a set: address by id


def should_act(own_id: int, told: Sequence[Members], *, is_following: bool, acts: bool) -> bool:
    """Whether to act from now on; `told` is what each name server that has answered says of the set.

    A master that one of them knows is there. So is one whose log still comes, but a master that comes back offers its
    log first and goes to work when it is registered; two at work would deliver everything twice. Who hears nothing goes
    on as before, as in RocketMQ: a name server that is gone says nothing about the master.
    """
    known = {member for members in told for member in members}
    if own_id == 0:
        return False
    if not known:
        return acts
    return own_id == min(known) and (acts or not is_following)
