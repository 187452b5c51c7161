"""The warm engine: a Spark of this user that stays, and that commands use instead of their own.

It is a process with a session in it (`server.py`). A command sends it a plan and gets Arrow batches
back (`client.py`), so that it needs neither a JVM nor PySpark itself, and what runs is the engine
that would have run here. `control.py` starts and stops it, `state.py` says where it is and with
which settings it runs, `wire.py` what is said and how both sides prove who they are.
"""

from __future__ import annotations
