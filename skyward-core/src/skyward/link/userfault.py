"""The kernel's descriptor for faults of this process's memory (userfaultfd(2), include/uapi/linux/userfaultfd.h)."""

from __future__ import annotations

import fcntl
import os
import platform
import struct
import sys

READ_WRITE = 3 << 30
API = 0xAA
UFFDIO_REGISTER = READ_WRITE | 32 << 16 | API << 8

_UFFDIO_API = READ_WRITE | 24 << 16 | API << 8 | 0x3F
_CALLS = {"x86_64": 323, "aarch64": 282}
_USER_MODE_ONLY = 1


def open_userfault(features: int) -> int:
    """
    Open a descriptor for faults, the caller's to close.

    Args:
        features: What the kernel has to offer.

    Raises:
        OSError: If it does not, or refuses the call, as some containers have it.
    """
    import ctypes

    number = _CALLS.get(platform.machine())
    if sys.platform != "linux" or number is None:
        raise OSError(f"userfaultfd(2) is not known on {sys.platform} {platform.machine()}.")
    fd: int = ctypes.CDLL(None, use_errno=True).syscall(number, os.O_CLOEXEC | os.O_NONBLOCK | _USER_MODE_ONLY)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd(2) is refused")
    try:
        fcntl.ioctl(fd, _UFFDIO_API, bytearray(struct.pack("3Q", API, features, 0)))
    except OSError:
        os.close(fd)
        raise
    return fd
