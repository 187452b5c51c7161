"""Ponds: what people wait for, against `deltalake` and against a bare import."""
