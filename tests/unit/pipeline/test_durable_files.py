"""Small files: whole or absent, for every reader, with nothing left beside them."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skyrocket.pipeline.durable_files import create_file, replace_file, replaced_file


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.json"
    replace_file(path, b"old")
    with contextlib.suppress(ZeroDivisionError), replaced_file(path) as file:
        file.write(b"ne")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with replaced_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old", "a reader sees it when it is whole"
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_of_many_who_create_a_file_one_does(tmp_path: Path) -> None:
    path = tmp_path / "first.json"
    texts = [b"%d" % number * 1000 for number in range(8)]
    with ThreadPoolExecutor(len(texts)) as pool:
        created = list(pool.map(lambda text: create_file(path, text), texts))
    assert sorted(created) == [False] * 7 + [True]
    assert path.read_bytes() == texts[created.index(True)]
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_the_file_as_far_as_the_user_lets_them_read_any(tmp_path: Path) -> None:
    (tmp_path / "any").touch()
    replace_file(tmp_path / "replaced", b"")
    create_file(tmp_path / "created", b"")
    assert len({(tmp_path / name).stat().st_mode for name in ("any", "replaced", "created")}) == 1
