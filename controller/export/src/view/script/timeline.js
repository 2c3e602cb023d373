// The timeline on its canvas. What is narrower than a pixel is drawn once a pixel, so that the time that a frame takes
// grows with the width and the rows that are seen, and not with the number of intervals.

const ROW = 17;
const HEAD = 20;
const BETWEEN = 8;
const AXIS = 24;
/** Narrowest interval that has its name in it, px. */
const NAMED = 34;
/** Mean width of a character, px. */
const CHARACTER = 6.7;
/** ns per px when no closer look is possible. */
const CLOSEST = 0.02;

/** By level, the outer ones first. */
const HUES = {
    pytorch_tx: 4, pta: 90, msproftx: 182, acl: 212, model: 150, node: 276, communication: 338, runtime: 30, aicpu: 56,
};

class Timeline {
    constructor(data, canvas) {
        this.data = data;
        this.canvas = canvas;
        this.pen = canvas.getContext("2d", { alpha: false });
        this.left = 0;
        this.scale = 1;
        this.top = 0;
        this.width = 0;
        this.height = 0;
        this.selected = -1;
        /** Rows of matches by lane, or null without a search. */
        this.matching = null;
        this.frames = { count: 0, last: 0, worst: 0 };
        this.asked = false;
        let y = BETWEEN / 2;
        for (const lane of data.lanes) {
            lane.y = y;
            y += HEAD + lane.rows.length * ROW + BETWEEN;
        }
        this.full = y;
        this.dress();
    }

    /** Takes the colours of the page, which go by the user's scheme. */
    dress() {
        const style = getComputedStyle(document.documentElement);
        const of = (name) => style.getPropertyValue(name).trim();
        this.back = of("--back");
        this.text = of("--text");
        this.faint = of("--faint");
        this.line = of("--line");
        this.panel = of("--panel");
        this.accent = of("--accent");
        this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
        this.colours = this.data.facts.names.map(([level, name]) => this.colour(level, name));
    }

    colour(level, name) {
        let sum = 0;
        for (let i = 0; i < name.length; i++) {
            sum = (sum * 31 + name.charCodeAt(i)) >>> 0;
        }
        const hue = (HUES[level] ?? 0) + (sum % 5) * 3 - 6;
        const shade = ((sum >>> 3) % 5) * 3;
        return this.dark ? `hsl(${hue} 42% ${34 + shade}%)` : `hsl(${hue} 58% ${66 + shade}%)`;
    }

    /** The time that is shown at first: the capture, or where that is not known, all there is. */
    span() {
        const [from, to] = this.data.facts.window ?? [0, this.data.last];
        return to > from ? [from, to] : [0, Math.max(1000, this.data.last)];
    }

    /** All of the capture, or at first, where hardly any of it has something in it, what has. */
    showAll(first = false) {
        let [from, to] = this.span();
        const { begin, last, count } = this.data;
        const earliest = count > 0 ? begin.reduce((least, time) => Math.min(least, time), Infinity) : from;
        if (first && count > 0 && last > earliest && last - earliest < (to - from) / 10) {
            [from, to] = [earliest, last];
        }
        this.scale = ((to - from) * 1.02) / Math.max(1, this.width);
        this.left = from - (to - from) * 0.01;
        this.ask();
    }

    resize(width, height) {
        const ratio = window.devicePixelRatio || 1;
        const first = this.width === 0;
        const span = this.scale * this.width;
        this.width = width;
        this.height = height;
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(height * ratio);
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        this.ratio = ratio;
        if (first) {
            this.showAll(true);
        } else {
            this.scale = span / Math.max(1, width);
        }
        this.move(0, 0);
    }

    x(time) {
        return (time - this.left) / this.scale;
    }

    time(x) {
        return this.left + x * this.scale;
    }

    /** Moves by so many px, and stays where there is something. */
    move(dx, dy) {
        const [from, to] = this.span();
        const first = Math.min(from, 0);
        const last = Math.max(to, this.data.last);
        const seen = this.width * this.scale;
        this.left = Math.min(Math.max(this.left + dx * this.scale, first - seen * 0.9), last - seen * 0.1);
        const most = Math.max(0, this.full - (this.height - AXIS));
        this.top = Math.min(Math.max(this.top + dy, 0), most);
        this.ask();
    }

    /** Makes px so many times longer or shorter; what is at x stays there. */
    zoom(factor, x) {
        const time = this.time(x);
        const [from, to] = this.span();
        const widest = (Math.max(to, this.data.last) - Math.min(from, 0)) * 1.2 / Math.max(1, this.width);
        this.scale = Math.min(Math.max(this.scale * factor, CLOSEST), Math.max(widest, CLOSEST));
        this.left = time - x * this.scale;
        this.move(0, 0);
    }

    ask() {
        if (!this.asked) {
            this.asked = true;
            requestAnimationFrame(() => {
                this.asked = false;
                this.draw();
            });
        }
    }

    draw() {
        const began = performance.now();
        const pen = this.pen;
        pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
        pen.fillStyle = this.back;
        pen.fillRect(0, 0, this.width, this.height);
        pen.font = "11px system-ui, sans-serif";
        pen.textBaseline = "middle";
        const ticks = this.ticks();
        pen.fillStyle = this.line;
        for (const [x] of ticks) {
            pen.fillRect(Math.round(x), AXIS, 1, this.height);
        }
        for (const [number, lane] of this.data.lanes.entries()) {
            const y = lane.y - this.top + AXIS;
            const high = HEAD + lane.rows.length * ROW;
            if (y + high >= AXIS && y <= this.height) {
                this.lane(lane, y, this.matching?.[number]);
            }
        }
        this.outline();
        this.axis(ticks);
        if (this.data.count === 0) {
            pen.fillStyle = this.faint;
            pen.fillText("No intervals were captured.", 12, AXIS + 24);
        }
        const took = performance.now() - began;
        this.frames.count++;
        this.frames.last = took;
        this.frames.worst = Math.max(this.frames.worst, took);
    }

    lane(lane, y, matches) {
        const pen = this.pen;
        pen.fillStyle = this.panel;
        pen.fillRect(0, y, this.width, HEAD - 3);
        lane.rows.forEach((row, number) => {
            const top = y + HEAD + number * ROW;
            if (top + ROW < AXIS || top > this.height) {
                return;
            }
            if (!this.matching) {
                this.row(row, top);
                return;
            }
            pen.globalAlpha = 0.22;
            this.row(row, top);
            pen.globalAlpha = 1;
            this.row(matches[number], top);
        });
        pen.fillStyle = this.text;
        const part = lane.shown < lane.total ? `${lane.shown} of ${lane.total} intervals` : `${lane.total} intervals`;
        pen.fillText(lane.label, 8, y + HEAD / 2 - 1);
        const wide = pen.measureText(lane.label).width;
        pen.fillStyle = this.faint;
        pen.fillText(part, 20 + wide, y + HEAD / 2 - 1);
    }

    row(row, y) {
        const { begin, end, name, facts } = this.data;
        const pen = this.pen;
        const right = this.time(this.width);
        let at = firstBehind(row, end, this.left, 0);
        // What has no length ends where it begins.
        while (at > 0 && end[row[at - 1]] >= this.left) {
            at--;
        }
        while (at < row.length && begin[row[at]] <= right) {
            const i = row[at];
            const from = Math.max(0, this.x(begin[i]));
            const to = Math.min(this.width, this.x(end[i]));
            pen.fillStyle = this.colours[name[i]];
            if (to - from < 1) {
                const pixel = Math.floor(from);
                pen.fillRect(pixel, y, 1, ROW - 2);
                at = firstBehind(row, end, this.time(pixel + 1), at + 1);
                continue;
            }
            pen.fillRect(from, y, to - from > 3 ? to - from - 0.5 : to - from, ROW - 2);
            if (to - from >= NAMED) {
                const room = Math.floor((to - from - 8) / CHARACTER);
                const text = facts.names[name[i]][1];
                pen.fillStyle = this.text;
                pen.fillText(text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text, from + 4, y + ROW / 2 - 0.5);
            }
            at++;
        }
    }

    outline() {
        const i = this.selected;
        if (i < 0) {
            return;
        }
        const { begin, end } = this.data;
        const from = Math.max(-4, this.x(begin[i]));
        const to = Math.min(this.width + 4, this.x(end[i]));
        if (to < -2 || from > this.width + 2) {
            return;
        }
        this.pen.strokeStyle = this.accent;
        this.pen.lineWidth = 2;
        this.pen.strokeRect(from - 1, this.rowTop(i), Math.max(3, to - from + 1), ROW - 1);
    }

    /** Where the row of an interval begins on the canvas. */
    rowTop(i) {
        const lane = this.data.lanes[this.data.laneOf[i]];
        return lane.y - this.top + AXIS + HEAD + this.data.depth[i] * ROW - 1;
    }

    ticks() {
        const wanted = this.scale * 110;
        const power = 10 ** Math.floor(Math.log10(wanted));
        const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((step) => step >= wanted) ?? power * 10);
        const [unit, size] = UNITS.find(([, size]) => step >= size) ?? UNITS[3];
        const origin = this.data.facts.window?.[0] ?? 0;
        const ticks = [];
        const first = Math.ceil((this.left - origin) / step);
        for (let n = first; ticks.length < 100; n++) {
            const x = this.x(origin + n * step);
            if (x > this.width) {
                break;
            }
            // Of minus nothing the sign is shown otherwise.
            ticks.push([x, `${((n * step) / size || 0).toLocaleString("en-US")} ${unit}`]);
        }
        return ticks;
    }

    axis(ticks) {
        const pen = this.pen;
        pen.fillStyle = this.back;
        pen.fillRect(0, 0, this.width, AXIS);
        pen.fillStyle = this.line;
        pen.fillRect(0, AXIS - 1, this.width, 1);
        for (const [x, label] of ticks) {
            pen.fillStyle = this.line;
            pen.fillRect(Math.round(x), AXIS - 6, 1, 6);
            pen.fillStyle = this.faint;
            pen.fillText(label, Math.round(x) + 4, AXIS / 2 - 1);
        }
    }

    /** The interval at a point of the canvas, -1 where there is none. */
    at(x, y) {
        if (y < AXIS) {
            return -1;
        }
        const { begin, end, lanes } = this.data;
        const down = y - AXIS + this.top;
        const lane = lanes.find((lane) => down >= lane.y + HEAD && down < lane.y + HEAD + lane.rows.length * ROW);
        const row = lane?.rows[Math.floor((down - lane.y - HEAD) / ROW)];
        if (!row) {
            return -1;
        }
        const reach = 2 * this.scale;
        const time = this.time(x);
        const at = firstBehind(row, end, time, 0);
        const near = (i) => Math.max(begin[i] - time, time - end[i], 0);
        let best = -1;
        for (const i of [row[at - 1], row[at]]) {
            if (i !== undefined && near(i) <= reach && (best < 0 || near(i) < near(best))) {
                best = i;
            }
        }
        return best;
    }

    /** Selects an interval and brings it into sight. */
    show(i) {
        const { begin, end } = this.data;
        this.selected = i;
        const length = Math.max(end[i] - begin[i], CLOSEST * 40);
        const wide = length / this.scale;
        if (wide < 3 || wide > this.width) {
            this.scale = Math.max(CLOSEST, length / (this.width / 4));
        }
        const x = this.x((begin[i] + end[i]) / 2);
        if (x < 20 || x > this.width - 20 || wide < 3 || wide > this.width) {
            this.left = (begin[i] + end[i]) / 2 - (this.width / 2) * this.scale;
        }
        const top = this.rowTop(i);
        const dy = top < AXIS ? top - AXIS - HEAD : Math.max(0, top + ROW + 4 - this.height);
        this.move(0, dy);
    }
}
