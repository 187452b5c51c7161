"""The command `pond`. `main.py` holds the group; each command is a file in `commands/`."""
