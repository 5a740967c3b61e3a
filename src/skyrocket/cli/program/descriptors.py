"""Standard input, output and error that nobody opened."""

import os
import sys
from io import TextIOWrapper
from typing import Final

_STANDARD: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))  # 0, 1, 2


def open_missing_descriptors() -> None:
    """Who starts us may have closed standard input, output or error: then they are nothing, as /dev/null is.

    The next socket would get the number otherwise, with all that is printed, and libuv ends a process that closes it.
    """
    for number, (name, mode) in enumerate(_STANDARD):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            assert opened == number
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - as long as we live


def escape_what_is_not_in_the_locale() -> None:
    """Names and bodies are of all languages: where a terminal or file has no sign for some, they are escaped."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
