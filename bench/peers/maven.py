"""Java programs by way of Maven: their classpath, fetched once and kept in the cache of `tests.interop`."""

import shutil
import subprocess

from tests.interop.apache import cache_directory, run_bounded

from bench.peers.other_system import Missing

_TIMEOUT_S = 300
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>skyrocket</groupId>
  <artifactId>bench-{name}</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{exclusions}</dependency>"
)
_ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"  # of what it needs
)


def classpath(name: str, *artifacts: str, alone: bool = False) -> str:
    """Of artifacts given as group:artifact:version, with what they need or alone; raises Missing."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        raise Missing("java or mvn is not on the PATH")
    home = cache_directory() / name
    listing = home / "classpath.txt"
    if not listing.exists():
        home.mkdir(parents=True, exist_ok=True)
        exclusions = _ALONE if alone else ""
        dependencies = "\n".join(_DEPENDENCY.format(*each.split(":"), exclusions=exclusions) for each in artifacts)
        (home / "pom.xml").write_text(_POM.format(name=name, dependencies=dependencies))
        goal = ["dependency:build-classpath", "-DincludeScope=runtime", f"-Dmdep.outputFile={listing}"]
        try:
            done = run_bounded(["mvn", "--quiet", "--batch-mode", *goal], _TIMEOUT_S, cwd=home)
        except subprocess.TimeoutExpired as error:
            raise Missing(f"Maven does not give {artifacts[0]}: {error}") from error
        if not listing.exists():
            raise Missing(f"Maven does not give {artifacts[0]}: {done.stdout.strip()[:300]}")
    return listing.read_text().strip()
