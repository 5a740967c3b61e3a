"""What applications import: present, documented, and cheap until it is used."""

import ast
import inspect
import re
import subprocess
import sys

import skyrocket
from skyrocket import client
from tests import ROOT
from tests.unit.client.api_page import page

DOCS = ROOT / "docs"


def entries(text: str) -> set[str]:
    """What a page has: headings of names, and their methods and fields."""
    found, heading = set(), ""
    for line in text.splitlines():
        if match := re.match(r"### (\w+)", line):
            heading = match[1]
            found.add(heading)
        elif match := re.match(r"(?:- `(?:await )?|\| `)(\w+)", line):
            found.add(f"{heading}.{match[1]}")
    return found


def test_every_public_name_method_and_field_is_on_the_api_page() -> None:
    written = entries((DOCS / "reference" / "client-api.md").read_text(encoding="utf-8"))
    missing = sorted(({*client.__all__} | entries(page())) - written)
    assert missing == [], "run: python -m tests.unit.client.api_page > docs/reference/client-api.md"


def test_every_public_class_has_a_docstring() -> None:
    classes = [value for name in client.__all__ if inspect.isclass(value := getattr(client, name))]
    assert [kind for kind in classes if not kind.__doc__] == []


def test_the_package_exports_what_the_client_has() -> None:
    for name in set(skyrocket.__all__) - {"__version__", "blocking"}:
        assert getattr(skyrocket, name) is getattr(client, name)
    assert skyrocket.blocking is client.blocking
    assert "Producer" in dir(skyrocket)


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, skyrocket; print([m for m in sys.modules if m.startswith('skyrocket.') or m == 'asyncio'])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    assert not hasattr(skyrocket, "Kafka")


def test_a_producer_is_imported_without_what_few_producers_need() -> None:
    unneeded = (
        "numpy",
        "lz4",
        "zstandard",
        "urllib.request",
        "email",
        "ipaddress",
        "hmac",
        "sqlite3",
        "uvloop",
        "logging.handlers",
        "concurrent.futures.thread",
        "skyrocket.remoting.server",
        "skyrocket.remoting.workers",
        "skyrocket.remoting.self_signed",
        "skyrocket.model.topic_config",
        "skyrocket.broker",
        "skyrocket.store",
        "skyrocket.config",
        "skyrocket.client.consumer",
        "skyrocket.client.pop",
        "skyrocket.client.admin",
        "skyrocket.client.tracing.trace",
        "skyrocket.protocol.requests.catalogue",
        "skyrocket.protocol.requests.acl",
        "skyrocket.protocol.requests.admin_broker",
        "skyrocket.protocol.requests.admin_groups",
        "skyrocket.protocol.requests.admin_topics",
        "skyrocket.protocol.requests.broker_registration",
        "skyrocket.protocol.requests.pop",
    )
    program = (
        "import sys; from skyrocket import Producer; "
        f"print([m for m in sys.modules if any((m + '.').startswith(each + '.') for each in {unneeded})])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_importing_the_errors_does_not_run_the_whole_client() -> None:
    program = (
        "import sys; import skyrocket.client.core.errors; "
        "print([m for m in sys.modules if m.startswith('skyrocket.client.') and 'core' not in m])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_type_checkers_see_the_names_that_are_loaded_when_they_are_used() -> None:
    tree = ast.parse(inspect.getsource(client))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and "not" not in ast.unparse(node.test))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(client.__all__)
    assert all(hasattr(client, name) for name in seen)
