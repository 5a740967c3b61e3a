"""Every relative link in the Markdown of the repository leads to a file, and its anchor to a heading."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

FOLDERS = ("docs", "examples", "bench", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
_FENCE = re.compile(r"^(?P<ticks>```+|~~~+).*?^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?:\]\(|(?:src|href)=\")(?P<target>[^()\s\"]+)[)\"]")
_HEADING = re.compile(r"^#+ (?P<text>.+?)\s*#*$", re.MULTILINE)
_PAGE_NAME = re.compile(r"\bdocs/[\w/-]+\.md\b")


def links(markdown: str) -> Iterator[str]:
    """Targets of links and pictures, those in code left out."""
    text = _CODE.sub("", _FENCE.sub("", markdown))
    yield from (match["target"] for match in _LINK.finditer(text))


def anchors(markdown: str) -> set[str]:
    """The anchors of headings as GitHub makes them; the second heading of a name has `-1`."""
    found: set[str] = set()
    for heading in _HEADING.finditer(_FENCE.sub("", markdown)):
        words = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading["text"]).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (unique := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(unique)
    return found


def broken(page: Path, markdown: str) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for link in links(markdown):
        name, _, anchor = link.partition("#")
        if "://" in name or name.startswith("mailto:"):
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or not target.is_relative_to(ROOT):
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{link}: {target.name} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page, page.read_text(encoding="utf-8"))) == []


def test_a_broken_link_is_found() -> None:
    page = ROOT / "docs" / "page.md"
    text = "[a](../README.md) [b](nowhere.md) [c](../README.md#no-such-heading) `[d](code.md)` ![e](no.svg)"
    found = [line.partition(":")[0] for line in broken(page, text)]
    assert found == ["nowhere.md", "../README.md#no-such-heading", "no.svg"]


def test_every_page_that_is_named_exists() -> None:
    """In Markdown, docstrings and error texts: `docs/guides/client.md` as plain text."""
    places = [
        *PAGES,
        ROOT / "Makefile",
        *(path for folder in ("src", "tests", "bench", "examples") for path in (ROOT / folder).rglob("*.py")),
    ]
    named = {(name, place) for place in places for name in _PAGE_NAME.findall(place.read_text(encoding="utf-8"))}
    assert [f"{place.relative_to(ROOT)} names {name}" for name, place in named if not (ROOT / name).is_file()] == []


def test_the_map_leads_to_every_page() -> None:
    the_map = ROOT / "docs" / "README.md"
    linked = {(the_map.parent / link.partition("#")[0]).resolve() for link in links(the_map.read_text("utf-8"))}
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page != the_map]
    assert [str(page.relative_to(ROOT)) for page in pages if page not in linked] == []
