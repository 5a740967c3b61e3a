"""What earlier runs into the same directory have found: their pages, and one page that lists them.

<out>/runs/20260131-120000.250.html      the page of a run, with its .json
<out>/runs.html                          the newest first
"""

import json
from collections.abc import Mapping
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from skyrocket.pipeline.durable_files import replace_file
from skyrocket.pipeline.report.page import STYLE
from skyrocket.pipeline.report.words import counted

FOLDER: Final = "runs"
LIST: Final = "runs.html"
KEPT: Final = 100


def remember(directory: Path, page: str, title: str, findings: int, made: datetime) -> None:
    """Keep a run beside those before it, and list them."""
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{made:%Y%m%d-%H%M%S}.{made.microsecond // 1000:03}"
    replace_file(folder / f"{name}.html", page.encode())
    told = {"title": title, "findings": findings, "made": made.isoformat(" ", "seconds")}
    replace_file(folder / f"{name}.json", f"{json.dumps(told, ensure_ascii=False)}\n".encode())
    known = sorted(folder.glob("*.json"), reverse=True)
    for old in known[KEPT:]:
        old.with_suffix(".html").unlink(missing_ok=True)
        old.unlink()
    runs = {each.stem: json.loads(each.read_text(encoding="utf-8")) for each in known[:KEPT]}
    replace_file(directory / LIST, runs_page(runs).encode())


def runs_page(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """A row per run."""
    rows = "\n".join(_row(name, told) for name, told in runs.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Runs</title><style>{STYLE}</style></head><body>\n<h1>Runs</h1>\n"
        f'<p class="dim">{counted(len(runs), "run")}, the newest first; at most {KEPT} are kept</p>\n'
        f'<div class="scroll"><table><tr><th>made</th><th>report</th><th>found</th></tr>\n{rows}</table></div>\n'
        "</body></html>\n"
    )


def _row(name: str, told: Mapping[str, Any]) -> str:
    found = int(told["findings"])
    kind = "bad" if found else "good"
    return (
        f'<tr><td><a href="{FOLDER}/{escape(name)}.html">{escape(told["made"])}</a></td>'
        f'<td>{escape(told["title"])}</td><td><span class="verdict {kind}">{counted(found, "finding")}</span></td></tr>'
    )
