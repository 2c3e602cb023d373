#!/usr/bin/env python3
"""Cost of exporting a capture: CPU time, wall time and peak memory of msprof --export=on, and of the stock parser.

usage: benches/export.py [--records N[,N...]] [--runs N] [--msprof PATH] [--dir DIR]

Makes a PROF directory of N calls of the runtime, acl, node and model levels on 8 threads, as the agent writes it, and
exports it. The stock parser's timeline and summary are taken in the same run where MSPROF_PARSER names its msprof.py, for the
first of several N. Prints a table: medians of the runs, and the smallest and the largest. CPU time is user and system time of
the process and all its children; memory is that of the largest of them.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

API = struct.Struct("<HHIIIQQQ")
MAGIC = 0x5A5A
RUNTIME, NODE, MODEL, ACL = 5000, 10000, 15000, 20000
START_NS = 876_117_208_663_000
START_US = 1_780_645_871_872_000
SLICE = 2 * 1024 * 1024 // API.size
THREADS = 8
# Level, type, name, item: what calls there are, in turns.
CALLS = [
    (ACL, 0x30001, "aclrtMalloc", 0),
    (RUNTIME, 1005, "DevMalloc", 0),
    (ACL, 0x50001, "aclnnAdd", 0),
    (NODE, 5, "launch", 101),
    (RUNTIME, 1001, "KernelLaunch", 0),
    (NODE, 5, "launch", 102),
    (RUNTIME, 1007, "MemcpyAsync", 0),
    (MODEL, 1, "ModelExecute", 1),
]


def make(directory, records):
    """A directory of the host with so many records."""
    data = os.path.join(directory, "host", "data")
    os.makedirs(data)
    info = {
        "platform_version": "5", "version": "1.0", "drvVersion": 467734, "devices": "64", "DeviceInfo": [],
        "CPU": [{"Id": 0, "Name": "x", "Frequency": "", "Logical_CPU_Count": "2", "Type": "x"}], "pid": "4321",
        "pid_name": "bench", "hostname": "host", "memoryTotal": 1, "netCard": [], "cpuNums": 2, "sysClockFreq": 100,
        "cpuCores": 1, "netCardNums": 0, "rank_id": -1, "jobInfo": "NA", "OS": "x", "hwtype": "x", "upTime": "1 1",
    }
    clock = {
        "collectionDateBegin": "", "collectionDateEnd": "", "collectionTimeBegin": str(START_US), "collectionTimeEnd": "",
        "clockMonotonicRaw": str(START_NS),
    }
    end = dict(clock, collectionTimeBegin="", collectionTimeEnd=str(START_US + 1_000_000_000))
    sample = {"devices": "64", "llc_profiling": "", "ai_core_profiling_mode": "task-based"}
    for name, value in (("info.json", info), ("start_info", clock), ("end_info", end), ("sample.json", sample)):
        put(os.path.join(directory, "host", name), json.dumps(value))
    log = f"[Host]\nclock_monotonic_raw: {START_NS}\ncntvct: {START_NS}\ncntvct_diff: 0\n"
    put(os.path.join(directory, "host", "host_start.log"), log)
    types = "".join(f"{level}_{kind}:{name}\n" for level, kind, name in sorted({call[:3] for call in CALLS}))
    put(os.path.join(data, "unaging.additional.type_info_dic.slice_0"), types)
    put(os.path.join(data, "unaging.additional.hash_dic.slice_0"), "101:Add_1\n102:MatMul_2\n")
    number, part = 0, 0
    while number < records:
        count = min(SLICE, records - number)
        batch = bytearray(count * API.size)
        for at in range(count):
            level, kind, _, item = CALLS[number % len(CALLS)]
            begin = START_NS + number * 2_000
            end_ns = begin + 500 + number * 7919 % 100_000
            API.pack_into(batch, at * API.size, MAGIC, level, kind, 4321 + number % THREADS, 0, begin, end_ns, item)
            number += 1
        with open(os.path.join(data, f"aging.api_event.data.slice_{part}"), "wb") as file:
            file.write(batch)
        part += 1


def put(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(command):
    """CPU seconds, wall seconds and peak MB of a command and its children."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024


def clear(directory):
    """Removes what an export has left."""
    for name in ("mindstudio_profiler_output", "mindstudio_profiler_log", "host/sqlite", "host/log", "host/timeline", "host/summary"):
        shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
    for path in glob.glob(os.path.join(directory, "host", "data", "*.complete")):
        os.remove(path)


def exported(directory):
    files = glob.glob(os.path.join(directory, "mindstudio_profiler_output", "msprof_*.json"))
    return sum(os.path.getsize(path) for path in files) / 1e6


def ours(msprof, directory):
    figures = run([msprof, "--export=on", f"--output={directory}"])
    return figures, exported(directory)


def stock(parser, directory):
    timeline = run([sys.executable, parser, "export", "timeline", "-dir", directory])
    summary = run([sys.executable, parser, "export", "summary", "-dir", directory])
    both = (timeline[0] + summary[0], timeline[1] + summary[1], max(timeline[2], summary[2]))
    return both, exported(directory)


def row(who, records, results):
    def spread(values, digits):
        low, high = min(values), max(values)
        return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    figures = [figures for figures, _ in results]
    cells = [f"{records:,}", who]
    cells += [spread([each[index] for each in figures], digits) for index, digits in ((0, 2), (1, 2), (2, 0))]
    cells.append(f"{statistics.median(size for _, size in results):.0f}")
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    asked.add_argument("--records", default="1000000,20000000", help="calls of the directories, comma-separated")
    asked.add_argument("--runs", type=int, default=3)
    asked.add_argument("--msprof", default="target/release/msprof")
    asked.add_argument("--dir", default=None, help="where the directories are made")
    asked.add_argument("--make", default=None, help=argparse.SUPPRESS)
    asked = asked.parse_args()
    if asked.make:
        make(asked.make, int(asked.records))
        return
    parser = os.environ.get("MSPROF_PARSER")
    print("| records | export by | CPU s | wall s | peak MB | timeline MB |\n|---|---|---|---|---|---|")
    for number, records in enumerate(int(word) for word in asked.records.split(",")):
        parent = tempfile.mkdtemp(prefix="bench-export-", dir=asked.dir)
        try:
            directory = os.path.join(parent, "PROF_000001_20260605155111872_00004321JDEKRCNE")
            # In a process of its own: what it takes would count as the memory of every child.
            subprocess.run([sys.executable, __file__, "--make", directory, "--records", str(records)], check=True)
            results = []
            for _ in range(asked.runs):
                results.append(ours(asked.msprof, directory))
                clear(directory)
            row("msprof", records, results)
            if parser and number == 0:
                results = []
                for _ in range(asked.runs):
                    results.append(stock(parser, directory))
                    clear(directory)
                row("stock parser (py)", records, results)
        finally:
            shutil.rmtree(parent, ignore_errors=True)


if __name__ == "__main__":
    main()
