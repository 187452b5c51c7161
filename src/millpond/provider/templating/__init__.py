"""Templates: what they see of their inputs (`inputs`), and how they are rendered (`jinja`)."""
