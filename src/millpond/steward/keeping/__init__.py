"""Keeping a pond in order: maintenance, `fsck`, and the content root."""
