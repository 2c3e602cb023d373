#!/usr/bin/env python3
"""Named ranges of one's own from Python, through ctypes.

    own_ranges.py <output directory> [<libmsprof_agent.so>]

The library is the second argument, else $MSPROF_AGENT_LIB, else the loader's.
"""
import contextlib
import ctypes
import math
import os
import sys

STEPS = 10
FEATURES = 5000


class Status(ctypes.Structure):
    """MsprofAgentStatus of msprof_agent.h."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("pid", ctypes.c_uint32),
        ("devices", ctypes.c_uint32),
        ("captures", ctypes.c_uint64),
        ("written", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
    ]


class Agent:
    """The agent's own API; a call that fails raises RuntimeError with its reason."""

    def __init__(self, library):
        self._lib = ctypes.CDLL(library)
        signatures = {
            "msprof_agent_version": (ctypes.c_char_p, []),
            "msprof_agent_status": (ctypes.c_int32, [ctypes.POINTER(Status)]),
            "msprof_agent_start": (ctypes.c_int32, [ctypes.c_char_p, ctypes.c_char_p]),
            "msprof_agent_stop": (ctypes.c_int32, [ctypes.c_char_p, ctypes.c_size_t]),
            "msprof_agent_push": (ctypes.c_int32, [ctypes.c_char_p]),
            "msprof_agent_pop": (ctypes.c_int32, []),
            "msprof_agent_last_error": (ctypes.c_size_t, [ctypes.c_char_p, ctypes.c_size_t]),
        }
        # Without these ctypes would pass a size or a pointer as a C int.
        for name, (result, arguments) in signatures.items():
            function = getattr(self._lib, name)
            function.restype = result
            function.argtypes = arguments

    def _check(self, result, call):
        if result != 0:
            text = ctypes.create_string_buffer(512)
            self._lib.msprof_agent_last_error(text, len(text))
            raise RuntimeError(f"{call}: {text.value.decode(errors='replace')}")

    def version(self):
        return self._lib.msprof_agent_version().decode()

    def start(self, output, options=None):
        options = None if options is None else options.encode()
        self._check(self._lib.msprof_agent_start(options, os.fsencode(output)), "start")

    def stop(self):
        """Ends the capture and returns its PROF_XXX directory."""
        path = ctypes.create_string_buffer(4096)
        self._check(self._lib.msprof_agent_stop(path, len(path)), "stop")
        return os.fsdecode(path.value)

    def status(self):
        status = Status(size=ctypes.sizeof(Status))
        self._check(self._lib.msprof_agent_status(ctypes.byref(status)), "status")
        return status

    @contextlib.contextmanager
    def range(self, name):
        self._check(self._lib.msprof_agent_push(name.encode()), "push")
        try:
            yield
        finally:
            self._check(self._lib.msprof_agent_pop(), "pop")


def train(agent):
    weights = [0.0] * FEATURES
    loss = 0.0
    for step in range(STEPS):
        with agent.range("load batch"):
            batch = [math.sin(0.001 * i + step) for i in range(FEATURES)]
        with agent.range("forward"):
            loss = 1.0 - math.tanh(sum(w * x for w, x in zip(weights, batch)))
        with agent.range("backward"):
            weights = [w + 1e-4 * loss * x for w, x in zip(weights, batch)]
    return loss


def main(arguments):
    if len(arguments) not in (2, 3):
        print(f"usage: {arguments[0]} <output directory> [<libmsprof_agent.so>]", file=sys.stderr)
        return 2
    library = os.environ.get("MSPROF_AGENT_LIB", "libmsprof_agent.so")
    if len(arguments) == 3:
        library = arguments[2]
    try:
        agent = Agent(library)
        print("agent", agent.version())
        agent.start(arguments[1])
        loss = train(agent)
        print(agent.stop())
        status = agent.status()
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"loss {loss:.3f}, records written {status.written}, lost {status.lost}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
