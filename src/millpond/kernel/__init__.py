"""The Delta kernel: reading and committing as state machines that emit plans."""
