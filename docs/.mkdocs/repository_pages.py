"""For the site: files outside docs/ that pages link to become pages of their own.

Pages link to ARCHITECTURE.md or examples/client_send.py as files of the repository, so that links work where the
Markdown lies. A site has only what is in docs/. So every such file is added to it under `repository/`, Markdown as it
is and everything else as a listing, and links are turned to lead there. A link to a file that does not exist stays as
it is, and mkdocs, which is strict, fails on it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from posixpath import dirname, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PREFIX = "repository/"
LINK = re.compile(r"(?<=\]\()(?P<target>[^()#\s]+)(?P<anchor>#[^()\s]*)?(?=\))")
FENCE = re.compile(r"^(?P<ticks>```+|~~~+).*?^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".yml": "yaml", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file outside docs/ that is linked to, also from such a file."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen: set[str] = set()
    while waiting:
        source = waiting.pop()
        for target in _linked(source, (ROOT / source).read_text(encoding="utf-8")):
            if target in seen or target.startswith("docs/") or not (ROOT / target).is_file():
                continue
            seen.add(target)
            content = (ROOT / target).read_text(encoding="utf-8")
            if target.endswith(".md"):
                waiting.append(target)
            else:
                content = f"# {target}\n\n````{LANGUAGES.get(Path(target).suffix, 'text')}\n{content}\n````\n"
            files.append(File.generated(config, _page(target), content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page to where their files are on the site."""
    here = page.file.src_uri
    source = here.removeprefix(PREFIX) if here.startswith(PREFIX) else f"docs/{here}"

    def turned(match: re.Match[str]) -> str:
        path = _path(source, match["target"])
        if path is None:
            return match[0]
        uri = path.removeprefix("docs/") if path.startswith("docs/") else _page(path)
        if files.get_file_from_path(uri) is None:
            return match[0]
        return relpath(uri, dirname(here) or ".") + (match["anchor"] or "")

    return _outside_fences(markdown, lambda text: LINK.sub(turned, text))


def _linked(source: str, markdown: str) -> list[str]:
    targets = (match["target"] for match in LINK.finditer(FENCE.sub("", markdown)))
    return [path for target in targets if (path := _path(source, target)) is not None]


def _path(source: str, target: str) -> str | None:
    """The file of the repository that a link names; None for an address elsewhere."""
    is_elsewhere = "://" in target or target.startswith("mailto:")
    return None if is_elsewhere else normpath(f"./{dirname(source)}/{target}")


def _page(path: str) -> str:
    return PREFIX + (path if path.endswith(".md") else f"{path}.md")


def _outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])
