"""Who pays when unfinished frames take too much memory."""

from skyrocket.remoting.guard import UnfinishedFrames

MIB = 1 << 20


def test_the_address_that_has_left_most_loses_its_oldest_large_frame_and_no_other_address_does() -> None:
    frames = UnfinishedFrames(16 * MIB)
    frames.holds("honest", "10.0.0.1", 4 * MIB, is_new=True)  # the oldest of all, and as large as the others
    frames.holds("small", "10.0.0.2", 100, is_new=True)
    for number in range(3):
        frames.holds(number, "10.0.0.2", 4 * MIB - 100, is_new=True)
    assert frames.to_give_up() is None
    frames.holds(3, "10.0.0.2", 4 * MIB, is_new=True)
    assert frames.to_give_up() == 0
    frames.released(0)
    assert frames.to_give_up() is None
    assert frames.size == 16 * MIB - 100


def test_a_frame_that_grows_keeps_its_age_and_one_that_is_begun_anew_does_not() -> None:
    frames = UnfinishedFrames(10)
    frames.holds("a", "10.0.0.1", 4, is_new=True)
    frames.holds("b", "10.0.0.1", 4, is_new=True)
    frames.holds("a", "10.0.0.1", 7, is_new=False)
    assert frames.to_give_up() == "a"
    frames.holds("a", "10.0.0.1", 7, is_new=True)
    assert frames.to_give_up() == "b"
