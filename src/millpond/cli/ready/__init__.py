"""Commands begin at once: while an engine is warm, a process that has imported everything waits.

`handing.py` is the command that a user starts: it hands its arguments, environment and standard
streams over, and waits. `keeper.py` is the process that waits; it forks, and the fork becomes the
command. `likeness.py` says whether a command would be the same there.
"""
