"""`python -m millpond.cli` is `pond`."""

from millpond.cli.start import main

if __name__ == "__main__":
    main()
