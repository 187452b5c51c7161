"""The Delta tables behind nodes, and rows on their way into them."""
