"""Helm: the machine's own, or one that Go builds from its module and keeps."""

import os
import shutil

from tests.interop.apache import Unavailable, cache_directory, locked, run_bounded

VERSION = "v3.22.0"
_BUILD_TIMEOUT_S = 900.0
_BUILT = cache_directory() / f"helm-{VERSION}" / "helm"


def helm_here() -> str | None:
    """From the PATH, or built at another time; None where there is neither."""
    return shutil.which("helm") or (str(_BUILT) if _BUILT.exists() else None)


def built_helm() -> str:
    """The same, built if need be (minutes); raises Unavailable."""
    found = helm_here()
    if found is not None:
        return found
    if shutil.which("go") is None:
        raise Unavailable("helm is not installed, and go, which would build it, is not on the PATH")
    _BUILT.parent.mkdir(parents=True, exist_ok=True)
    with locked(_BUILT.with_name("lock")):
        if not _BUILT.exists():
            scratch = _BUILT.with_name(f"bin-{os.getpid()}")
            command = ["go", "install", f"helm.sh/helm/v3/cmd/helm@{VERSION}"]
            done = run_bounded(command, _BUILD_TIMEOUT_S, environment={**os.environ, "GOBIN": str(scratch)})
            if done.exit_code != 0:
                raise Unavailable(f"Go does not build Helm {VERSION}: {done.stderr[-300:]}")
            (scratch / "helm").rename(_BUILT)
            scratch.rmdir()
    return str(_BUILT)
