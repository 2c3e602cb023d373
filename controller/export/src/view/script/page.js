// The rest of the page: facts, banners, legend, tables; and what a test may ask.

const COLUMNS = ["Level", "API", "Count", "Total (us)", "Mean (us)", "P50 (us)", "P99 (us)", "Max (us)"];

const page = { errors: [], timeline: null, input: null };

window.addEventListener("error", (event) => page.errors.push(String(event.message)));
document.addEventListener("securitypolicyviolation", (event) => page.errors.push(event.violatedDirective));

/** Writes the state of the page into an attribute of its root. */
function publish() {
    const { timeline, input, errors } = page;
    if (!timeline || !input) {
        return;
    }
    const { data, frames } = timeline;
    document.documentElement.dataset.view = JSON.stringify({
        intervals: data.count,
        total: data.facts.total,
        lanes: data.lanes.length,
        rows: data.lanes.reduce((sum, lane) => sum + lane.rows.length, 0),
        names: data.facts.names.length,
        frames: frames.count,
        last_ms: frames.last,
        worst_ms: frames.worst,
        selected: timeline.selected,
        matches: input.matches,
        errors,
    });
}

function head(facts) {
    document.getElementById("capture").append(...pairs(facts.facts));
    for (const banner of facts.banners) {
        const made = element("p", banner.text);
        made.className = banner.bad ? "banner bad" : "banner";
        document.getElementById("banners").append(made);
    }
}

function legend(timeline) {
    const all = Object.keys(HUES);
    const levels = [...new Set(timeline.data.facts.names.map(([level]) => level))];
    levels.sort((a, b) => all.indexOf(a) - all.indexOf(b));
    const made = levels.map((level) => {
        const swatch = document.createElement("canvas");
        [swatch.width, swatch.height] = [11, 11];
        const pen = swatch.getContext("2d");
        pen.fillStyle = timeline.colour(level, "");
        pen.fillRect(0, 0, 11, 11);
        return element("span", "", swatch, level);
    });
    document.getElementById("legend").replaceChildren(...made);
}

/** The table of calls, sorted by a click on a column's head. */
function callTable(facts, input) {
    const table = document.getElementById("calls");
    const rows = [...facts.calls];
    const body = element("tbody");
    const heads = COLUMNS.map((title, column) => {
        const button = element("button", title);
        button.type = "button";
        const cell = element("th", "", button);
        cell.scope = "col";
        button.addEventListener("click", () => {
            const down = cell.getAttribute("aria-sort") !== "descending" && column > 1
                || cell.getAttribute("aria-sort") === "ascending";
            sort(column, down);
        });
        return cell;
    });
    function sort(column, down) {
        heads.forEach((cell) => cell.removeAttribute("aria-sort"));
        heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        // What is not known comes last.
        const value = (row) => row[column] ?? -sign * Infinity * -1;
        rows.sort((a, b) => sign * (column < 2 ? a[column].localeCompare(b[column]) : value(a) - value(b) || 0));
        body.replaceChildren(...rows.map((row) => {
            const name = element("button", row[1]);
            name.type = "button";
            name.title = "Find it in the timeline";
            name.addEventListener("click", () => {
                input.search.value = row[1];
                input.find(row[1]);
                input.next(1);
                window.scrollTo({ top: 0 });
            });
            const numbers = row.slice(3).map((ns) => element("td", microText(ns)));
            return element("tr", "", element("td", row[0]), element("td", "", name),
                element("td", row[2].toLocaleString("en-US")), ...numbers);
        }));
    }
    table.append(element("thead", "", element("tr", "", ...heads)), body);
    sort(3, true);
    const [names, calls] = facts.more;
    if (names > 0) {
        document.getElementById("more").textContent =
            `... and ${names.toLocaleString("en-US")} more names with ${calls.toLocaleString("en-US")} calls`;
    } else if (facts.calls.length === 0) {
        document.getElementById("more").textContent = "No calls were captured.";
    }
}

function plainTable(titles, rows) {
    const heads = titles.map((title) => element("th", title));
    const body = rows.map((row) => element("tr", "", ...row.map((cell) => element("td", cell))));
    return element("table", "", element("thead", "", element("tr", "", ...heads)), element("tbody", "", ...body));
}

/** Models and devices, where there are any. */
function others(facts) {
    const section = document.getElementById("others");
    const share = (part) => (part === null ? "-" : `${(part * 100).toFixed(1)} %`);
    if (facts.models.length > 0) {
        const rows = facts.models.map(({ id, name, per_second: rate, times }) => [
            id, name || "-", times.count.toLocaleString("en-US"), rate === null ? "-" : rate.toFixed(1),
            microText(times.mean_ns), microText(times.p50_ns), microText(times.p99_ns), microText(times.max_ns),
        ]);
        const titles = ["Model", "Name", "Runs", "Runs per second", ...COLUMNS.slice(4)];
        section.append(element("h2", "Runs of models"), plainTable(titles, rows));
    }
    if (facts.devices.length > 0) {
        const rows = facts.devices.map((row) => [
            String(row.device), "AICPU", microText(row.busy_ns), share(row.busy_share),
            microText(row.data_wait_ns), share(row.data_wait_share),
        ]);
        const titles = ["Device", "", "Busy (us)", "of the time", "Waited for data (us)", "of the time"];
        section.append(element("h2", "AICPU of the devices"), plainTable(titles, rows));
    }
}

/** Frame times in ms of so many frames between all of the capture and the closest look, with the pixels done. */
function measure(count) {
    const { timeline } = page;
    const times = [];
    const [from, to] = timeline.span();
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    for (let n = 0; n < count; n++) {
        const closer = 10 ** -(n % 6);
        timeline.scale = Math.max(CLOSEST, ((to - from) * closer) / timeline.width);
        timeline.left = from + (to - from) * ((n * 0.37) % 1) * (1 - closer);
        const began = performance.now();
        timeline.draw();
        // Waits for the pixels.
        probe.drawImage(timeline.canvas, 0, 0, 1, 1);
        probe.getImageData(0, 0, 1, 1);
        times.push(performance.now() - began);
    }
    timeline.showAll();
    publish();
    times.sort((a, b) => a - b);
    return { frames: count, median: times[count >> 1], worst: times[count - 1] };
}

/** Where an interval is on the page, for a click. */
function place(i) {
    const { timeline } = page;
    const box = timeline.canvas.getBoundingClientRect();
    const x = timeline.x((timeline.data.begin[i] + timeline.data.end[i]) / 2);
    return { x: box.left + x, y: box.top + timeline.rowTop(i) + ROW / 2 };
}

function start() {
    const began = performance.now();
    const data = readData();
    document.getElementById("main").hidden = false;
    head(data.facts);
    page.timeline = new Timeline(data, document.getElementById("timeline"));
    page.input = new Input(page.timeline);
    legend(page.timeline);
    callTable(data.facts, page.input);
    others(data.facts);
    page.input.fit();
    page.timeline.draw();
    publish();
    window.msprofView = { page, measure, place, loaded_ms: performance.now() - began };
}

start();
