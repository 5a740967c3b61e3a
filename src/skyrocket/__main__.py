"""`python -m skyrocket` is the command line."""

from skyrocket.cli import main

if __name__ == "__main__":
    main()
