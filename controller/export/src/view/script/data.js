"use strict";

// The intervals of the page, as view/page.rs packs them: columns of numbers, seven bits a byte, lane after lane.

/** Rows of a lane; what is nested deeper lies in the last one. */
const ROWS_MAX = 32;

/** Numbers of a column. The text is not kept. */
function unpack(id, count) {
    const node = document.getElementById(id);
    const text = atob(node.textContent.trim());
    node.remove();
    const values = new Float64Array(count);
    let at = 0;
    for (let i = 0; i < count; i++) {
        let value = 0;
        let scale = 1;
        let byte;
        do {
            byte = text.charCodeAt(at++);
            value += (byte & 127) * scale;
            scale *= 128;
        } while (byte & 128);
        values[i] = value;
    }
    return values;
}

/** All intervals by number, and the lanes with the numbers of each row. Times are ns since the earliest one. */
function readData() {
    const facts = JSON.parse(document.getElementById("facts").textContent);
    const count = facts.lanes.reduce((sum, lane) => sum + lane.shown, 0);
    const begin = unpack("begins", count);
    const end = unpack("durations", count);
    const name = Uint32Array.from(unpack("names", count));
    const item = Uint32Array.from(unpack("items", count));
    const depth = new Uint8Array(count);
    const laneOf = new Uint16Array(count);
    let first = 0;
    let last = 0;
    const lanes = facts.lanes.map((lane, number) => {
        let now = 0;
        for (let i = first; i < first + lane.shown; i++) {
            now += begin[i];
            begin[i] = now;
            end[i] += now;
            last = Math.max(last, end[i]);
            laneOf[i] = number;
        }
        const rows = rowsOf(begin, end, depth, first, first + lane.shown);
        first += lane.shown;
        return { ...lane, rows };
    });
    return { facts, count, begin, end, name, item, depth, laneOf, lanes, last };
}

/** Puts each interval below those that it lies within, which come before it. */
function rowsOf(begin, end, depth, first, behind) {
    const open = new Float64Array(ROWS_MAX);
    const counts = new Uint32Array(ROWS_MAX);
    let height = 0;
    for (let i = first; i < behind; i++) {
        while (height > 0 && open[height - 1] <= begin[i]) {
            height--;
        }
        const row = Math.min(height, ROWS_MAX - 1);
        open[row] = height < ROWS_MAX ? end[i] : Math.max(open[row], end[i]);
        height = row + 1;
        depth[i] = row;
        counts[row]++;
    }
    const rows = [];
    for (let row = 0; row < ROWS_MAX && counts[row] > 0; row++) {
        rows.push(new Uint32Array(counts[row]));
    }
    counts.fill(0);
    for (let i = first; i < behind; i++) {
        rows[depth[i]][counts[depth[i]]++] = i;
    }
    return rows;
}

/** Place of the first of sorted intervals, from `from` on, that ends behind a time. */
function firstBehind(row, end, time, from) {
    let low = from;
    let high = row.length;
    // Mostly it is near.
    for (let step = 1; low + step < high; step *= 2) {
        if (end[row[low + step]] > time) {
            high = low + step + 1;
            break;
        }
        low += step;
    }
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (end[row[middle]] > time) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];

/** A length of time in the unit that suits it. */
function lengthText(ns) {
    const [unit, size] = UNITS.find(([, size]) => Math.abs(ns) >= size) ?? UNITS[3];
    const value = ns / size;
    return `${size === 1 ? Math.round(value) : value.toFixed(3)} ${unit}`;
}

/** ns in us, with thousands told apart. */
function microText(ns) {
    if (ns === null) {
        return "-";
    }
    return (ns / 1000).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
}

/** An element with text, never markup, and children. */
function element(tag, text, ...children) {
    const made = document.createElement(tag);
    if (text) {
        made.textContent = text;
    }
    made.append(...children);
    return made;
}

/** Names and values. */
function pairs(list) {
    return list.map(([name, value]) => element("div", "", element("dt", name), element("dd", value)));
}
