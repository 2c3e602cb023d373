#!/usr/bin/env python3
"""Named ranges of one's own from Python, through ctypes.

    own_ranges.py <output directory> [<libmsprof_agent.so>]

The library is the second argument, else $MSPROF_AGENT_LIB, else the loader's.
"""
import math
import sys

import msprof_agent

STEPS = 10
FEATURES = 5000


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
    library = arguments[2] if len(arguments) == 3 else None
    try:
        agent = msprof_agent.Agent(library)
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
