"""The index of a local pond: a tree that can be listed without Arrow (`design/0008`)."""
