"""The commit of a transaction in eight steps: races, recovery, and what runs after it."""
