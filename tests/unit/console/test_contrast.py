"""Colours of the pages, light and dark: text can be read on whatever it stands on (WCAG 2.1, AA: 4.5 to 1)."""

import re

import pytest

from tests import ROOT

TOKENS = (ROOT / "src" / "skyrocket" / "console" / "static" / "tokens.css").read_text("utf-8")
COLOURS = {name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", TOKENS)}
GROUNDS = ("ground", "surface", "raised", "sunken")
STANDS_ON = {
    "text": (*GROUNDS, "note-soft", "warn-soft", "bad-soft", "good-soft"),
    "text-soft": GROUNDS,
    "text-faint": GROUNDS,
    "accent-strong": (*GROUNDS, "accent-soft"),
    "on-accent": ("accent", "accent-strong", "bad"),
    "good": ("surface", "sunken", "good-soft"),
    "warn": ("surface", "sunken", "warn-soft"),
    "bad": ("surface", "raised", "bad-soft"),
    "note": ("surface", "sunken", "note-soft"),
}
LEAST = 4.5


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_whatever_it_stands_on(theme: str) -> None:
    at = ("light", "dark").index(theme)
    ratios = {
        f"{text} on {ground}": contrast(COLOURS[text][at], COLOURS[ground][at])
        for text, grounds in STANDS_ON.items()
        for ground in grounds
    }
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < LEAST} == {}
