"""Rotating log files of this machine: their bytes (`files`), and what of them is new (`news`)."""
