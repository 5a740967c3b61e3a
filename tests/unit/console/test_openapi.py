"""The description of the endpoints, and the pages that use them."""

import json
import re
from typing import Any

from skyrocket.console.api.families import ENDPOINTS
from skyrocket.console.api.openapi import description
from tests import ROOT

PAGES = ROOT / "src" / "skyrocket" / "console" / "static"


def _references(value: Any) -> set[str]:
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value)))


def test_every_endpoint_is_described_with_words_and_types_that_are_there() -> None:
    document = description(ENDPOINTS)
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert len(operations) == len(ENDPOINTS) + 1  # /api/live follows them
    assert [each["operationId"] for each in operations if not each["summary"]] == []
    assert _references(document) - document["components"]["schemas"].keys() == set()


def test_no_two_endpoints_have_a_name_or_a_path_in_common() -> None:
    names = [endpoint.handler.__name__ for endpoint in ENDPOINTS]
    places = [(endpoint.method, endpoint.path) for endpoint in ENDPOINTS]
    assert sorted(set(names)) == sorted(names)
    assert sorted(set(places)) == sorted(places)


def test_every_plain_path_that_a_page_asks_for_is_an_endpoint() -> None:
    known = {endpoint.path for endpoint in ENDPOINTS} | {"/api/live", "/api/openapi.json", "/api/"}
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGES.rglob("*.js"))
    asked = {path.rstrip("`") for path in re.findall(r'["`](/api/[a-z./-]*)', scripts)}
    assert asked - known == set()
