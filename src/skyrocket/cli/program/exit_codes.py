"""How commands end: 0 done, 1 failed, 2 wrong usage, 3 some brokers did it and others failed, 4 it is not there."""

from typing import Final

from skyrocket.errors import ConfigError, SkyrocketError

EXIT_FAILED: Final = 1
EXIT_PARTLY: Final = 3
EXIT_NOT_FOUND: Final = 4
_NOT_THERE: Final = frozenset({17, 22, 26, 206, 208})  # topic, query, group, nobody online, no message


def exit_code_of(error: SkyrocketError) -> int | None:
    """The code that a command ends with; None for wrong usage, which is 2."""
    from skyrocket.client import BrokerRefused, NoRoute, NotFound, NotWritable, PartlyFailed, RouteTooWide, WrongUse

    if isinstance(error, PartlyFailed):
        return EXIT_PARTLY
    if isinstance(error, NotFound) or (isinstance(error, BrokerRefused) and error.code in _NOT_THERE):
        return EXIT_NOT_FOUND
    if isinstance(error, NoRoute) and not isinstance(error, NotWritable | RouteTooWide):
        return EXIT_NOT_FOUND
    return None if isinstance(error, ConfigError | WrongUse) else EXIT_FAILED
