"""An error as every answer and event of the console tells it."""

from dataclasses import dataclass

from skyrocket.errors import SkyrocketError
from skyrocket.model.words import Phrase, Said, phrase_of


@dataclass(frozen=True, slots=True)
class Error:
    """Why it was not done, with the next step."""

    error: str
    kind: str
    phrase: Phrase  # what the text is made of, for who says it in another language


def told(error: SkyrocketError) -> Error:
    """The text, with its phrase if it was raised with one."""
    text = error.args[0] if error.args and isinstance(error.args[0], Said) else str(error)
    return Error(text, type(error).__name__, phrase_of(text))
