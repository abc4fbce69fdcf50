"""
Measurements that are run side by side, each in a process of its own.
"""
