"""The stored log of a pool, as values: its lines, what is hidden in them, and what they say of money."""
