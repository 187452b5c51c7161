"""Engines run plans: `arrow` in this process, `spark` on a session. They never meet."""
