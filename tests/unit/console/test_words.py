"""The words of the pages: every English text has a Chinese one, and no page makes HTML of what it is given."""

import re

from tests import ROOT

STATIC = ROOT / "src" / "skyrocket" / "console" / "static"
SCRIPTS = {path: path.read_text(encoding="utf-8") for path in sorted(STATIC.rglob("*.js"))}
_COUNTED = re.compile(r'\bcounted\([^"]*, "([^"]+)", "([^"]+)"')
CHINESE = re.findall(r'^  "((?:[^"\\]|\\.)*)": "(.+)",$', (STATIC / "words_zh.js").read_text(encoding="utf-8"), re.M)


def test_every_text_of_a_page_has_a_chinese_one() -> None:
    used = {text for script in SCRIPTS.values() for text in re.findall(r'\bt\("((?:[^"\\]|\\.)*)"', script)}
    used |= {many for script in SCRIPTS.values() for _, many in _COUNTED.findall(script)}
    assert used - {english for english, _ in CHINESE} == set()


def test_every_text_of_a_table_of_texts_has_a_chinese_one() -> None:
    """As `const KINDS = {lag: "Lag"}` and `t(KINDS[row.kind])`."""
    everything = "\n".join(SCRIPTS.values())
    tables = set(re.findall(r"\bt\(([A-Z_]+)[.\[]", everything))
    assert tables
    used: set[str] = set()
    for name in tables:
        (table,) = re.findall(rf"const {name} = {{(.*?)}};", everything, re.S)
        found = re.findall(r':\s*"([^"]+)"', table)
        assert found, name
        used |= set(found)
    assert used - {english for english, _ in CHINESE} == set()


def test_a_number_of_things_has_a_form_for_one_and_a_form_for_many() -> None:
    pairs = [pair for script in SCRIPTS.values() for pair in _COUNTED.findall(script)]
    assert pairs
    assert [many for one, many in pairs if one == many or "{n}" not in many] == []
    # "{n} topics" would say "1 topics".
    plural = re.compile(r"""\bt\("[^"]*{(?:n|lag|clients|groups|queues|messages)} \w*[^s\W]s\b""")
    assert [found for script in SCRIPTS.values() for found in plural.findall(script)] == []


def test_both_languages_fill_in_the_same_values() -> None:
    def values(text: str) -> set[str]:
        return set(re.findall(r"{(\w+)}", text))

    assert [english for english, chinese in CHINESE if values(english) != values(chinese)] == []


def test_no_script_makes_html_or_code_of_a_text() -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser")
    assert [path.name for path, script in SCRIPTS.items() if forbidden.search(script)] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    everything = [
        *SCRIPTS.values(),
        *(path.read_text() for path in STATIC.glob("*.css")),
        (STATIC / "index.html").read_text(),
    ]
    addresses = {found for text in everything for found in re.findall(r"https?://[^\s\"')]+", text)}
    assert addresses <= {"http://www.w3.org/2000/svg"}
