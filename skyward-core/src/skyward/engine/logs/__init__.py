"""The stored logs of pools: written by one thread for each open pool, and read by other programs."""
