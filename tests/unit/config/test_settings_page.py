"""docs/reference/settings.md is what the settings say."""

from skyrocket.config.reference import settings_page
from tests import ROOT

PAGE = ROOT / "docs" / "reference" / "settings.md"


def test_the_settings_page_is_not_stale() -> None:
    assert PAGE.read_text() == settings_page(), "run: python -m skyrocket.config.reference > docs/reference/settings.md"
