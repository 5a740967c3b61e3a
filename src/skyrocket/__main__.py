"""`python -m skyrocket`, and the installed `skyrocket`: the command line, if what it needs is there."""

import sys
from typing import Final

_NEEDED: Final = ("click", "rich", "typer")


def main() -> None:
    """Run a command."""
    try:
        from skyrocket.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        sys.exit(
            "skyrocket: only the client is installed, without commands: pip install 'skyrocket[cli]' for worker, "
            "produce, consume and the like, 'skyrocket[server]' for servers"
        )
    run()


if __name__ == "__main__":
    main()
