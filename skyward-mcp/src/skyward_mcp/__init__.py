"""
A server of the Model Context Protocol over stdio: an agent looks up offers, runs scripts, reads logs and ends pools.

It is started with a budget for all of it, and touches nothing that it has not started.
"""
