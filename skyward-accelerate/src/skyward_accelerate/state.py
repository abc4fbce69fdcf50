"""
What Accelerate knows once in a process: as new in every call, as it is in a process that `accelerate launch` starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import check_cuda_p2p_ib_support

from skyward import PluginError
from skyward_accelerate.config import Config
from skyward_accelerate.environment import environment

__all__ = ["CALLS", "check"]

_OURS = (b"ACCELERATE_", b"FSDP_", b"MEGATRON_LM_", b"PARALLELISM_CONFIG_")
"""How the variables begin that Accelerate reads and writes."""

# What is beneath `os.environ`: the way through it takes longer than all the rest of a call.
_ENVIRON: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]


class Calls:
    """Hold how deep a process is in calls, because what Accelerate knows is shared by all of them."""

    def __init__(self) -> None:
        self._depth = 0

    @contextmanager
    def prepared(self, config: Config) -> Iterator[None]:
        """
        Prepare a process with what its calls need, so that it is sent once.

        Args:
            config: How they train.

        Raises:
            PluginError: If there is no GPU and they need one.
        """
        check(config, "around_process")
        before = dict(_ENVIRON)
        _put(_variables(config, within=False))
        try:
            yield
        finally:
            _restore(before)

    @contextmanager
    def around(self, config: Config) -> Iterator[None]:
        """
        Limit Accelerate's state to the call.

        Args:
            config: How the call trains.

        Raises:
            PluginError: If there is no GPU and it needs one.
        """
        check(config, "decorate")
        before = dict(_ENVIRON)
        if not self._depth:
            _forget()
        given = _variables(config, within=self._depth > 0)
        if not given.items() <= before.items():
            _put(given)
        self._depth += 1
        if not _gpus_talk():
            # Accelerate refuses such GPUs without, and its launcher sets them.
            os.environ.setdefault("NCCL_P2P_DISABLE", "1")
            os.environ.setdefault("NCCL_IB_DISABLE", "1")
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                _forget()
            # Accelerate writes what it is asked for in code there too.
            if before != _ENVIRON:
                _restore(before)


CALLS = Calls()
"""The calls of this process."""


def check(config: Config, hook: str) -> None:
    """
    Refuse what the GPUs are missing for.

    Args:
        config: How it is to train.
        hook: In which hook this is found out.

    Raises:
        PluginError: If there is no GPU and it needs one.
    """
    if config.needs_gpu and _on_cpu(config):
        raise PluginError(
            f"{config.needs_gpu} needs GPUs, and torch sees none on this node.",
            plugin="accelerate",
            hook=hook,
            hint="Leave it out, or ask for: accelerator=.",
        )


@cache
def _variables(config: Config, *, within: bool) -> dict[bytes, bytes]:
    given = environment(config, cpu=_on_cpu(config), within=within)
    return {os.fsencode(name): os.fsencode(text) for name, text in given.items()}


def _on_cpu(config: Config) -> bool:
    return not torch.cuda.is_available() if config.use_cpu is None else config.use_cpu


def _restore(before: dict[bytes, bytes]) -> None:
    """Restore the variables of Accelerate; what else the call has set stays."""
    for name in [name for name in _ENVIRON if name.startswith(_OURS) and name not in before]:
        os.unsetenv(name)
        del _ENVIRON[name]
    _put({name: text for name, text in before.items() if name.startswith(_OURS) and _ENVIRON.get(name) != text})


def _put(variables: dict[bytes, bytes]) -> None:
    for name, text in variables.items():
        os.putenv(name, text)
        _ENVIRON[name] = text


def _forget() -> None:
    # Most calls leave nothing, and to reset it takes longer than to look.
    if AcceleratorState._shared_state or PartialState._shared_state or GradientState._shared_state:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()


@cache
def _gpus_talk() -> bool:
    """Return whether the machine's GPUs reach each other past the processor."""
    talk: bool = check_cuda_p2p_ib_support()
    return talk
