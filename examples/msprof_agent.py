"""The agent's own API for Python, through ctypes: a module to copy.

    import msprof_agent

    agent = msprof_agent.Agent()
    agent.start("/data/prof", "--runtime-api=on")
    with agent.range("forward"):
        ...
    print(agent.stop())                 # the PROF_XXX directory

A program that others capture, with msprof, needs the ranges alone: outside of a capture one costs what ctypes takes for
two calls. The library is then in the process already, by LD_PRELOAD or in the place of libprofapi.so, and Agent() finds
it there under its own name. Otherwise Agent() loads it; with components=True, before CANN is imported, CANN's own reports
go to it as well.

Every method may be called from any thread. A range belongs to the thread that opened it, and a thread closes its ranges
in the reverse order; ``with`` does both. A call does not hold up Python's other threads: ctypes releases the
interpreter's lock for it.

include/msprof_agent.h describes the calls behind it.
"""
import contextlib
import ctypes
import os

LIBRARY = "libmsprof_agent.so"

# States of the agent, as in Status.state.
INERT, IDLE, CAPTURING, FINISHING, DISABLED = range(5)

__all__ = ["Agent", "Status", "INERT", "IDLE", "CAPTURING", "FINISHING", "DISABLED"]


class Status(ctypes.Structure):
    """MsprofAgentStatus of msprof_agent.h: state, pid, open devices, captures so far, records written and lost."""

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
    """The agent in this process. Where nothing else is said, a call that fails raises RuntimeError with its reason.

    library     path of libmsprof_agent.so; None for $MSPROF_AGENT_LIB, else for the one that is loaded or that the
                loader finds. OSError when there is none
    components  True lets libraries that are loaded later report to it (RTLD_GLOBAL)
    """

    def __init__(self, library=None, components=False):
        if library is None:
            library = os.environ.get("MSPROF_AGENT_LIB") or LIBRARY
        mode = ctypes.RTLD_GLOBAL if components else ctypes.RTLD_LOCAL
        self._lib = ctypes.CDLL(os.fspath(library), mode)
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
        """The library's version, such as "0.1.0"."""
        return self._lib.msprof_agent_version().decode()

    def start(self, output=None, options=None):
        """Starts a capture, also in a process that is not armed.

        output   directory in which PROF_XXX is made; None for what the options say, else for
                 $ASCEND_WORK_PATH/profiling_data, else for the working directory
        options  words of the msprof command line, such as "--runtime-api=on --aicpu=on"
        """
        options = None if options is None else options.encode()
        output = None if output is None else os.fsencode(output)
        if b"\0" in (options or b"") + (output or b""):
            raise ValueError("embedded null byte")
        self._check(self._lib.msprof_agent_start(options, output), "start")

    def stop(self):
        """Ends the capture, whoever started it, waits until it is written, and returns its PROF_XXX directory."""
        path = ctypes.create_string_buffer(4096)
        self._check(self._lib.msprof_agent_stop(path, len(path)), "stop")
        return os.fsdecode(path.value)

    def status(self):
        """The state, and what the running capture or the last one has written and lost, as a Status."""
        status = Status(size=ctypes.sizeof(Status))
        self._check(self._lib.msprof_agent_status(ctypes.byref(status)), "status")
        return status

    @contextlib.contextmanager
    def range(self, name):
        """A named range of the calling thread; at most 64 of them in each other.

        The thread's innermost range is the one that ends: with an `await` or a `yield` in it, tasks that share the
        thread get each other's times.

        Never raises: what cannot be recorded, such as a range in which a capture begins or ends, is left out.
        """
        opened = self._lib.msprof_agent_push(name.encode(errors="replace")) == 0
        try:
            yield
        finally:
            if opened:
                self._lib.msprof_agent_pop()
