// Mouse, keys and search: what moves the timeline and what it tells of.

const ZOOM = 1.3;
const STEP = 80;
/** Movement of a click, px; more is a drag. */
const CLICK = 4;

class Input {
    constructor(timeline) {
        this.timeline = timeline;
        this.data = timeline.data;
        this.canvas = timeline.canvas;
        this.frame = document.getElementById("frame");
        this.scroll = document.getElementById("scroll");
        this.tip = document.getElementById("tip");
        this.details = document.getElementById("details");
        this.hint = this.details.firstElementChild;
        this.search = document.getElementById("search");
        this.matches = 0;
        this.lower = this.data.facts.names.map(([, name]) => name.toLowerCase());
        this.lowerItems = this.data.facts.items.map((item) => item.toLowerCase());
        this.drag = null;
        this.listen();
    }

    listen() {
        const { canvas, timeline } = this;
        window.addEventListener("resize", () => this.fit());
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
            timeline.dress();
            legend(timeline);
            timeline.ask();
        });
        this.scroll.addEventListener("scroll", () => {
            timeline.move(0, this.scroll.scrollTop - timeline.top);
        });
        canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        canvas.addEventListener("pointerdown", (event) => this.press(event));
        canvas.addEventListener("pointermove", (event) => this.hover(event));
        canvas.addEventListener("pointerup", (event) => this.release(event));
        canvas.addEventListener("pointercancel", () => { this.drag = null; });
        canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
        canvas.addEventListener("dblclick", (event) => {
            const i = timeline.at(event.offsetX, event.offsetY);
            if (i >= 0) {
                this.closeUp(i);
            }
        });
        canvas.addEventListener("keydown", (event) => this.key(event));
        document.addEventListener("keydown", (event) => {
            if (event.key === "/" && document.activeElement !== this.search) {
                event.preventDefault();
                this.search.focus();
            }
        });
        this.search.addEventListener("input", () => this.find(this.search.value));
        this.search.addEventListener("keydown", (event) => {
            if (event.key === "Enter") {
                this.next(event.shiftKey ? -1 : 1);
            }
        });
        const press = (id, does) => document.getElementById(id).addEventListener("click", does);
        press("before", () => this.next(-1));
        press("after", () => this.next(1));
        press("closer", () => this.zoom(1 / ZOOM));
        press("farther", () => this.zoom(ZOOM));
        press("whole", () => timeline.showAll());
    }

    /** Gives the canvas the room that the frame has. */
    fit() {
        // No higher than what there is to show.
        this.frame.style.height = "";
        const wanted = this.timeline.full + AXIS + BETWEEN;
        if (wanted < this.frame.clientHeight) {
            this.frame.style.height = `${wanted}px`;
        }
        const { clientWidth, clientHeight } = this.frame;
        const overflows = this.timeline.full > clientHeight - AXIS;
        this.scroll.hidden = !overflows;
        document.getElementById("space").style.height = `${this.timeline.full + AXIS}px`;
        this.timeline.resize(clientWidth - (overflows ? this.scroll.offsetWidth : 0), clientHeight);
        this.moved();
    }

    /** After whatever moved the timeline up or down. */
    moved() {
        if (Math.abs(this.scroll.scrollTop - this.timeline.top) >= 1) {
            this.scroll.scrollTop = this.timeline.top;
        }
    }

    zoom(factor) {
        this.timeline.zoom(factor, this.timeline.width / 2);
    }

    wheel(event) {
        event.preventDefault();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
        if (event.shiftKey) {
            this.timeline.move((event.deltaY || event.deltaX) * lines, 0);
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            this.timeline.move(event.deltaX * lines, 0);
        } else {
            const turns = Math.max(-3, Math.min(3, (event.deltaY * lines) / 100));
            this.timeline.zoom(ZOOM ** turns, event.offsetX);
        }
    }

    press(event) {
        if (event.button === 0) {
            this.drag = { x: event.offsetX, y: event.offsetY, moved: false };
            this.canvas.setPointerCapture(event.pointerId);
            this.canvas.focus({ preventScroll: true });
        }
    }

    hover(event) {
        const { offsetX: x, offsetY: y } = event;
        const { drag, timeline } = this;
        if (drag) {
            drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > CLICK;
            if (drag.moved) {
                timeline.move(drag.x - x, drag.y - y);
                [drag.x, drag.y] = [x, y];
                this.moved();
                this.tip.hidden = true;
            }
            return;
        }
        const i = timeline.at(x, y);
        this.canvas.style.cursor = i >= 0 ? "pointer" : "default";
        this.tip.hidden = i < 0;
        if (i >= 0) {
            const [level, name] = this.data.facts.names[this.data.name[i]];
            const length = lengthText(this.data.end[i] - this.data.begin[i]);
            const item = this.data.facts.items[this.data.item[i]];
            this.tip.replaceChildren(element("b", name), element("span", [level, length, item].filter(Boolean).join(" · ")));
            const right = Math.min(x + 14, timeline.width - this.tip.offsetWidth - 4);
            const below = y + 18 + this.tip.offsetHeight < timeline.height ? y + 18 : y - this.tip.offsetHeight - 8;
            this.tip.style.transform = `translate(${Math.max(0, right)}px, ${Math.max(0, below)}px)`;
        }
    }

    release(event) {
        const clicked = this.drag && !this.drag.moved;
        this.drag = null;
        if (clicked) {
            this.select(this.timeline.at(event.offsetX, event.offsetY));
        }
    }

    key(event) {
        if (event.ctrlKey || event.altKey || event.metaKey) {
            return;
        }
        const { timeline } = this;
        const page = timeline.height - AXIS - ROW;
        const does = {
            w: () => this.zoom(1 / ZOOM),
            "+": () => this.zoom(1 / ZOOM),
            s: () => this.zoom(ZOOM),
            "-": () => this.zoom(ZOOM),
            a: () => timeline.move(-STEP, 0),
            d: () => timeline.move(STEP, 0),
            0: () => timeline.showAll(),
            PageUp: () => timeline.move(0, -page),
            PageDown: () => timeline.move(0, page),
            Home: () => timeline.move(0, -timeline.full),
            End: () => timeline.move(0, timeline.full),
            Escape: () => this.select(-1),
            Enter: () => timeline.selected >= 0 && this.closeUp(timeline.selected),
            ArrowLeft: () => this.step(-1, 0),
            ArrowRight: () => this.step(1, 0),
            ArrowUp: () => this.step(0, -1),
            ArrowDown: () => this.step(0, 1),
        }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
        if (does) {
            event.preventDefault();
            does();
            this.moved();
        }
    }

    /** Goes to the interval beside the selected one in its row, or to the one around or inside it. */
    step(across, down) {
        const { data, timeline } = this;
        const i = timeline.selected;
        if (i < 0) {
            const row = data.lanes.find((lane) => lane.shown > 0)?.rows[0] ?? [];
            const first = row[firstBehind(row, data.end, Math.max(timeline.left, 0), 0)] ?? row[0];
            return first !== undefined && this.go(first);
        }
        const lane = data.lanes[data.laneOf[i]];
        const row = lane.rows[data.depth[i] + down];
        if (!row) {
            return;
        }
        let at = firstBehind(row, data.end, data.begin[i], 0);
        if (across) {
            at = row.indexOf(i) + across;
        }
        const to = row[at];
        const around = down < 0 && to !== undefined && data.begin[to] <= data.begin[i];
        const inside = down > 0 && to !== undefined && data.begin[to] <= data.end[i];
        if (to !== undefined && (across || around || inside)) {
            this.go(to);
        }
    }

    go(i) {
        this.select(i);
        this.timeline.show(i);
        this.moved();
    }

    closeUp(i) {
        const { begin, end } = this.data;
        this.timeline.scale = Math.max(CLOSEST, (end[i] - begin[i]) / (this.timeline.width * 0.6));
        this.timeline.left = (begin[i] + end[i]) / 2 - (this.timeline.width / 2) * this.timeline.scale;
        this.go(i);
    }

    /** Shows what is known of an interval; -1 for none. */
    select(i) {
        this.timeline.selected = i;
        this.timeline.ask();
        publish();
        if (i < 0) {
            this.details.replaceChildren(this.hint);
            return;
        }
        const { facts, begin, end, name, item, laneOf, lanes } = this.data;
        const [level, text] = facts.names[name[i]];
        const list = [["name", text], ["level", level]];
        if (item[i]) {
            list.push(["of", facts.items[item[i]]]);
        }
        const start = facts.window?.[0] ?? 0;
        list.push(["duration", lengthText(end[i] - begin[i])], ["begin", `${microText(begin[i] - start)} us`]);
        list.push(["end", `${microText(end[i] - start)} us`]);
        if (facts.wall_ms !== null && Math.abs(facts.wall_ms + begin[i] / 1e6) < 8e15) {
            list.push(["wall clock", new Date(facts.wall_ms + begin[i] / 1e6).toISOString()]);
        }
        list.push([lanes[laneOf[i]].device ? "device" : "thread", lanes[laneOf[i]].label.replace(/^thread /, "")]);
        const row = facts.calls.find((row) => row[0] === level && row[1] === text);
        if (row) {
            list.push(["all of that name", `${row[2].toLocaleString("en-US")}, mean ${lengthText(row[4])}, p99 ${row[6] === null ? "-" : lengthText(row[6])}`]);
        }
        this.details.replaceChildren(element("dl", "", ...pairs(list)));
    }

    /** Finds intervals by a part of their name or item. */
    find(text) {
        const { data, timeline } = this;
        const wanted = text.trim().toLowerCase();
        const output = document.getElementById("matches");
        this.matches = 0;
        timeline.matching = null;
        if (wanted) {
            const names = this.lower.map((name) => name.includes(wanted));
            const items = this.lowerItems.map((item) => item.includes(wanted));
            const matches = (i) => names[data.name[i]] || items[data.item[i]];
            timeline.matching = data.lanes.map((lane) => lane.rows.map((row) => row.filter(matches)));
            for (const row of timeline.matching.flat()) {
                this.matches += row.length;
            }
        }
        output.textContent = wanted ? `${this.matches.toLocaleString("en-US")} found` : "";
        timeline.ask();
        publish();
    }

    /** The next match in time, or the one before. */
    next(direction) {
        const { data, timeline } = this;
        const from = timeline.selected;
        const order = (i, j) => data.begin[i] - data.begin[j] || i - j;
        let best = -1;
        let wrapped = -1;
        for (const row of timeline.matching?.flat() ?? []) {
            for (const i of row) {
                if (from >= 0 && order(i, from) * direction > 0 && (best < 0 || order(i, best) * direction < 0)) {
                    best = i;
                }
                if (wrapped < 0 || order(i, wrapped) * direction < 0) {
                    wrapped = i;
                }
            }
        }
        const to = best >= 0 ? best : wrapped;
        if (to >= 0) {
            this.go(to);
        }
    }
}
