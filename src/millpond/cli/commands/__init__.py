"""One file a command, imported when that command is called and not before."""
