"""What it costs to begin: importing the package, asking the command for its help."""
