#!/usr/bin/env python3
"""Compares the export of msprof with that of the stock parser, row by row.

usage: compare_export.py [--msprof PATH] [--keep] <msprof.py of the stock parser> <PROF directory>...

Runs both on copies of each directory and compares every row of every file: of api_statistic counts exactly and times
within their rounding, of the timelines every event (name, thread, begin, duration, arguments), of the other tables cell by
cell. Prints what differs and exits with 1; what is known to differ is in KNOWN, with the reason, and only counted.
"""

import argparse
import csv
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

OUTPUT = "mindstudio_profiler_output"
SHOWN = 5
# Tables of a device's own log of tasks, which is no part of what msprof exports (docs/export.md).
DEVICE_TABLES = ("task_time", "op_summary", "op_statistic", "communication_statistic", "step_trace")
DEVICE_LAYERS = ("Ascend Hardware", "Overlap Analysis", "Communication")

KNOWN = {
    "repeated": "with several devices the stock parser writes the call of number 0 once for each",
    "before-device": "the stock parser leaves out what the host did before the first device's begin",
    "frequency": "the stock parser draws the constant frequency of AI cores once a millisecond; msprof twice",
    "device-log": "layers, flows and tables made of the device's log of tasks are not exported",
    "node": "the node of an aicpu row comes from the device's log of tasks",
    "quotes": "names with commas, quotes or line ends are quoted in csv, and those that a spreadsheet would take for a formula have a ' before them",
    "utf-8": "bytes that are no UTF-8 are left out of data queues' names there; msprof shows that there were some",
    "nothing": "the stock parser writes no api_statistic where all durations are 0",
}


class Comparison:
    """What differs in one directory."""

    def __init__(self, name):
        self.name = name
        self.differences = []
        self.known = Counter()
        self.equal = Counter()

    def differs(self, text):
        self.differences.append(text)

    def print(self):
        equal = ", ".join(f"{kind} {count}" for kind, count in sorted(self.equal.items()))
        print(f"{self.name}: equal: {equal or 'nothing'}")
        for reason, count in sorted(self.known.items()):
            print(f"  known, {count}: {KNOWN[reason]}")
        for text in self.differences[:SHOWN * 4]:
            print(f"  DIFFERS {text}")
        if len(self.differences) > SHOWN * 4:
            print(f"  ... {len(self.differences)} differences")


def copy(source, parent, label):
    """A copy without exports, that the stock parser accepts: its name begins with PROF_, devices have a directory data."""
    name = os.path.basename(os.path.normpath(source))
    target = os.path.join(parent, label, name if name.startswith("PROF_") else f"PROF_{name}")
    skipped = shutil.ignore_patterns(OUTPUT, "mindstudio_profiler_log", "sqlite", "*.complete", "msprof_*.db")
    shutil.copytree(source, target, symlinks=True, ignore=skipped)
    for base, dirs, _ in os.walk(target):
        os.chmod(base, 0o750)
        if re.fullmatch(r"device_\d+", os.path.basename(base)) and "data" not in dirs:
            os.mkdir(os.path.join(base, "data"))
    return target


# The stock parser numbers calls of aging or of unaging files first, whichever the directory happens to list first; msprof those
# of unaging ones. So that numbers can be compared, it is shown directories in that order.
STOCK = """
import os, runpy, sys
listed = os.listdir
os.listdir = lambda *args: sorted(listed(*args), key=lambda name: (not str(name).startswith("unaging"), str(name)))
del sys.argv[0]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_stock(parser, directory):
    for kind in ("timeline", "summary"):
        command = [sys.executable, "-c", STOCK, parser, "export", kind, "-dir", directory]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def run_ours(msprof, directory):
    command = [msprof, "--export=on", f"--output={directory}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr}")


def exported(directory):
    """Files by kind and ending, slices of one kind in their order."""
    files = {}
    for path in sorted(glob.glob(os.path.join(directory, OUTPUT, "*"))):
        match = re.fullmatch(r"([a-z_]+?)(?:_slice_(\d+))?_\d{14}\.(csv|json)", os.path.basename(path))
        if match:
            files.setdefault((match[1], match[3]), []).append((int(match[2] or 0), path))
    return {kind: [path for _, path in sorted(slices)] for kind, slices in files.items()}


def table(paths):
    head, rows = None, []
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
        head = lines[0]
        rows.extend(lines[1:])
    return head, rows


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", text) is not None


FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_ours(cell):
    """A cell of the stock parser's as msprof writes it."""
    text = re.sub(r"[\r\n]", "", cell)
    return "'" + text if not is_number(text) and text.startswith(FORMULA) else text


def is_same_but_for_damage(ours, theirs):
    """Whether cells are the same without bytes that are no UTF-8. A number that had some is none to msprof."""
    if "\ufffd" not in ours:
        return ours in (theirs, as_ours(theirs))
    text, plain = ours.replace("\ufffd", ""), re.sub(r"[\r\n]", "", theirs)
    return text in (theirs, plain) or plain.startswith(FORMULA) and text == "'" + plain


def compare_tables(kind, ours, theirs, found):
    (our_head, our_rows), (their_head, their_rows) = table(ours), table(theirs)
    if our_head != their_head:
        found.differs(f"{kind}: columns {our_head} and {their_head}")
        return
    if kind == "api_statistic":
        compare_statistic(our_rows, their_rows, found)
        return
    node = our_head.index("Node") if kind == "aicpu" else None
    for index in range(max(len(our_rows), len(their_rows))):
        ours_is = our_rows[index] if index < len(our_rows) else None
        theirs_is = their_rows[index] if index < len(their_rows) else None
        if ours_is is None or theirs_is is None:
            found.differs(f"{kind}: row {index}: {ours_is} and {theirs_is}")
            continue
        if node is not None and ours_is[node] == "N/A" != theirs_is[node]:
            found.known["node"] += 1
            theirs_is[node] = "N/A"
        if ours_is == theirs_is:
            found.equal[kind] += 1
        elif ours_is == [as_ours(cell) for cell in theirs_is]:
            found.equal[kind] += 1
            found.known["quotes"] += 1
        elif len(ours_is) == len(theirs_is) and all(map(is_same_but_for_damage, ours_is, theirs_is)):
            found.equal[kind] += 1
            found.known["utf-8"] += 1
        else:
            found.differs(f"{kind}: row {index}: {ours_is} and {theirs_is}")


def compare_statistic(our_rows, their_rows, found):
    """Counts are exact. Times agree within their rounding: 0.001, and what a sum of rounded floats is off by."""
    key = lambda row: tuple(row[:3])
    if [key(row) for row in our_rows] != [tuple(as_ours(cell) for cell in row[:3]) for row in their_rows]:
        found.differs(f"api_statistic: names {sorted({key(r) for r in our_rows} ^ {key(r) for r in their_rows})[:SHOWN]}")
        return
    for ours_is, theirs_is in zip(our_rows, their_rows):
        counts = ours_is[4] == theirs_is[4]
        pairs = zip(ours_is[3:4] + ours_is[5:], theirs_is[3:4] + theirs_is[5:])
        times = all(abs(float(a) - float(b)) <= 0.00101 + 1e-9 * abs(float(b)) for a, b in pairs)
        if counts and times:
            found.equal["api_statistic"] += 1
        else:
            found.differs(f"api_statistic: {ours_is} and {theirs_is}")


def event_key(event):
    """All of an event but the number of its call."""
    args = dict(event.get("args", {}))
    args.pop("connection_id", None)
    fixed = tuple(event.get(name) for name in ("name", "ph", "pid", "tid", "ts", "dur", "id", "cat", "bp"))
    return fixed, json.dumps(args, sort_keys=True)


def keys(events):
    """How often each event is there; names of processes and threads count once."""
    counts = Counter(map(event_key, events))
    return Counter({key: 1 if key[0][1] == "M" else count for key, count in counts.items()})


def load(paths):
    events = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            events.extend(json.load(file))
    return events


def first_device_begin(directory):
    """us since the epoch; without devices, minus infinity."""
    begins = []
    for path in glob.glob(os.path.join(directory, "device_*", "start_info.*")):
        if not path.endswith(".done"):
            with open(path, encoding="utf-8") as file:
                begins.append(float(json.load(file)["collectionTimeBegin"]))
    return min(begins, default=float("-inf"))


def compare_timelines(kind, ours, theirs, found, first_begin):
    our_events, their_events = load(ours), load(theirs)
    their_events = drop_device_layers(their_events, found)
    our_events, their_events = drop_frequency(our_events, their_events, found)
    our_keys, their_keys = keys(our_events), keys(their_events)
    extra = their_keys - our_keys
    first = Counter(event_key(event) for event in their_events if event.get("args", {}).get("connection_id") == 0)
    for key, count in list(extra.items()):
        if key in our_keys and count < first[key]:
            found.known["repeated"] += count
            del extra[key]
    for key, count in list(extra.items())[:SHOWN]:
        found.differs(f"{kind}: {count} times in the stock parser's alone: {key}")
    more = our_keys - their_keys
    early = {key for key in more if key[0][1] != "M" and float(key[0][4]) < first_begin}
    if early:
        found.known["before-device"] += len(early)
        # Threads of such calls alone.
        early |= {key for key in more if key[0][1] == "M"}
    for key, count in [item for item in more.items() if item[0] not in early][:SHOWN]:
        found.differs(f"{kind}: {count} times in ours alone: {key}")
    found.equal[kind] += sum((our_keys & their_keys).values())
    compare_numbers(kind, our_events, their_events, found)


def drop_device_layers(events, found):
    pids = {event["pid"] for event in events if event["name"] == "process_name" and event["args"]["name"] in DEVICE_LAYERS}
    flow = lambda event: event.get("cat") == "HostToDevice"
    kept = [event for event in events if event["pid"] not in pids and not flow(event)]
    if len(kept) < len(events):
        found.known["device-log"] += len(events) - len(kept)
    return kept


def drop_frequency(our_events, their_events, found):
    """Layers of a frequency that is the same all the time: only begin, end and value of each are compared."""
    layers = {}
    for events, side in ((our_events, 0), (their_events, 1)):
        for event in events:
            if event["ph"] == "C" and event["name"] == "AI Core Freq":
                layers.setdefault(event["pid"], ([], []))[side].append(event)
    dropped = set()
    for pid, (mine, others) in layers.items():
        values = {event["args"]["MHz"] for event in mine + others}
        spans = [[float(event["ts"]) for event in events] for events in (mine, others)]
        if len(values) == 1 and all(spans):
            (first, last), (their_first, their_last) = [(min(times), max(times)) for times in spans]
            # Of the points, which are a millisecond apart, those before the start are left out there.
            if -1 <= their_first - first <= 1000 and abs(last - their_last) <= 1:
                if len(others) != len(mine):
                    found.known["frequency"] += len(others) - len(mine)
                dropped.update(id(event) for event in mine + others)
                continue
        found.differs(f"AI Core Freq of {pid}: {values} in {[len(span) for span in spans]} points")
    keep = lambda events: [event for event in events if id(event) not in dropped]
    return keep(our_events), keep(their_events)


def compare_numbers(kind, our_events, their_events, found):
    """The numbers of calls, which are no part of an event's key."""
    numbers = {}
    for events, side in ((our_events, 0), (their_events, 1)):
        for event in events:
            number = event.get("args", {}).get("connection_id")
            if number is not None:
                numbers.setdefault(event_key(event), ([], []))[side].append(number)
    for key, (mine, others) in numbers.items():
        mine, others = sorted(mine), sorted(set(others))
        # What one of them alone has is told with the events.
        if mine != others and mine and others:
            found.differs(f"{kind}: numbers {mine[:SHOWN]} and {others[:SHOWN]} of {key}")
        if len(set(mine)) != len(mine):
            found.differs(f"{kind}: one number for two calls: {key} {mine[:SHOWN]}")


def compare(parser, msprof, source, parent):
    found = Comparison(source)
    ours, theirs = copy(source, parent, "ours"), copy(source, parent, "stock")
    run_stock(parser, theirs)
    run_ours(msprof, ours)
    our_files, their_files = exported(ours), exported(theirs)
    for kind, ending in sorted(set(our_files) | set(their_files)):
        mine, others = our_files.get((kind, ending)), their_files.get((kind, ending))
        if kind in DEVICE_TABLES and mine is None:
            found.known["device-log"] += 1
        elif others is None and kind == "api_statistic" and all(float(row[3]) == 0 for row in table(mine)[1]):
            found.known["nothing"] += 1
        elif mine is None or others is None:
            found.differs(f"{kind}.{ending}: only {'the stock parser' if mine is None else 'msprof'} writes it")
        elif ending == "csv":
            compare_tables(kind, mine, others, found)
        else:
            compare_timelines(kind, mine, others, found, first_device_begin(ours))
    if not their_files:
        found.differs("the stock parser has exported nothing")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--msprof", default="msprof", help="the controller (default: msprof of PATH)")
    parser.add_argument("--keep", action="store_true", help="leave the copies behind and name them")
    parser.add_argument("stock", help="msprof.py of the stock parser")
    parser.add_argument("directories", nargs="+", help="PROF directories")
    asked = parser.parse_args()
    parent = tempfile.mkdtemp(prefix="compare-export-")
    failed = 0
    try:
        for number, source in enumerate(asked.directories):
            found = compare(asked.stock, asked.msprof, source, os.path.join(parent, str(number)))
            found.print()
            failed += bool(found.differences)
    finally:
        if asked.keep:
            print(f"copies are in {parent}")
        else:
            shutil.rmtree(parent, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
