//! `msprof view` in a browser: what the page draws, tells and lets nobody do. Skipped where there is no Chromium.

mod support;

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use support::artifacts::artifacts;
use support::browser::{Page, browser};
use support::captured::{Capture, event_pairs};
use support::home::Home;
use support::process::Finished;
use support::written::{ACL, MODEL, NODE, RUNTIME, START_NS, TYPES, nested, written};

/// Writes a page of a directory.
fn view(home: &Home, prof: &Path, options: &[&str]) -> (PathBuf, Finished) {
    let file = home.path().join("page.html");
    let finished = home
        .plain(&artifacts().msprof)
        .arg("view")
        .arg(format!("--output={}", file.display()))
        .args(options)
        .arg(prof)
        .run();
    (file, finished)
}

/// What the page says of itself.
fn state(page: &mut Page) -> Value {
    page.value("publish()");
    let text = page.value("document.documentElement.dataset.view");
    serde_json::from_str(text.as_str().expect("a state")).expect("JSON")
}

fn text(page: &mut Page, selector: &str) -> String {
    let text = page.value(&format!("document.querySelector('{selector}').textContent"));
    text.as_str().expect("text").to_owned()
}

fn click(page: &mut Page, interval: u64) {
    let at = page.value(&format!("msprofView.place({interval})"));
    page.mouse(
        at["x"].as_f64().expect("x"),
        at["y"].as_f64().expect("y"),
        0.0,
    );
}

#[track_caller]
fn assert_content(page: &mut Page) {
    assert_eq!(state(page)["errors"], json!([]));
    assert_eq!(page.complaints, [] as [&str; 0]);
}

/// Kept for whoever wants to look at them, where a directory is named.
fn keep(page: &mut Page, name: &str) {
    let picture = page.screenshot();
    assert!(picture.len() > 10_000, "a picture of something");
    if let Some(dir) = std::env::var_os("MSPROF_TEST_SCREENSHOTS") {
        let file = Path::new(&dir).join(format!("{name}.png.base64"));
        std::fs::write(file, picture).expect("written");
    }
}

fn colours(page: &mut Page, scheme: &str) {
    let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
    page.call(
        "Emulation.setEmulatedMedia",
        json!({ "features": features }),
    );
}

#[test]
fn a_capture_of_the_demo_is_drawn_searched_and_told_of() {
    let Some(browser) = browser() else {
        return;
    };
    let capture = Capture::make("--seconds=-1 --streams=2 --pause-us=2000 --marks");
    let prof = capture.open();
    let home = Home::new();
    let (file, finished) = view(&home, &prof.path, &[]);
    finished.expect_code(0);
    let mut page = Page::open(&browser, &file, true);
    let found = state(&mut page);
    assert_eq!(found["intervals"], found["total"]);
    assert!(found["frames"].as_u64() > Some(0), "{found}");
    let said = finished.text();
    assert!(
        said.contains(&format!("{} intervals", found["total"])),
        "{said}"
    );

    // The table counts what the files hold, and the timeline finds as many.
    let runs = event_pairs(&prof, "ModelExecute");
    let row = "[...document.querySelectorAll('#calls tbody tr')].map(row => [...row.children].map(cell => \
               cell.textContent)).find(([level, name]) => level === 'model' && name === 'ModelExecute')";
    assert_eq!(page.value(row)[2], runs.to_string());
    page.value("document.getElementById('search').focus()");
    page.call("Input.insertText", json!({ "text": "modelEXECUTE" }));
    let matches = state(&mut page)["matches"].as_u64().expect("a count");
    let of_runtime = prof.api().into_iter().filter(|record| {
        !record.is_event() && record.level == RUNTIME && prof.name_of(record) == "ModelExecute"
    });
    assert_eq!(matches, runs + of_runtime.count() as u64);

    // Ranges that the demo names itself.
    let names = page.value("msprofView.page.timeline.data.facts.names");
    let names = names.as_array().expect("names");
    assert!(
        names.contains(&json!(["msproftx", "inference"])),
        "{names:?}"
    );

    // The first match, by the keyboard alone; then what lies around and inside it.
    page.key("Enter");
    let selected = state(&mut page)["selected"].as_i64().expect("a number");
    assert!(selected >= 0);
    assert!(text(&mut page, "#details").contains("ModelExecute"));
    page.value("document.getElementById('timeline').focus()");
    page.key("ArrowUp");
    assert!(text(&mut page, "#details").contains("aclmdlExecute"));
    page.key("ArrowDown");
    assert!(text(&mut page, "#details").contains("ModelExecute"));
    page.key("Escape");
    assert_eq!(state(&mut page)["selected"], -1);
    keep(&mut page, "demo-search");

    let scale = |page: &mut Page| page.value("msprofView.page.timeline.scale").as_f64();
    page.key("0");
    let whole = scale(&mut page);
    page.key("w");
    assert!(scale(&mut page) < whole);
    page.key("0");
    page.mouse(600.0, 300.0, -400.0);
    page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert!(scale(&mut page) < whole);
    assert_content(&mut page);
}

#[test]
fn a_hundred_thousand_intervals_are_drawn_in_frames_that_are_measured() {
    let Some(browser) = browser() else {
        return;
    };
    let home = Home::new();
    let prof = written(&home, nested(100_000), TYPES);
    let (file, finished) = view(&home, &prof, &[]);
    finished.expect_code(0);
    let mut page = Page::open(&browser, &file, true);
    let found = state(&mut page);
    assert_eq!(
        (&found["intervals"], &found["lanes"]),
        (&json!(100_000), &json!(2))
    );
    // Model, node and kernel lie below the call that they are in.
    assert_eq!(found["rows"], 8);
    assert!(text(&mut page, "#banners").contains("Records were lost: 7 (runtime-api 7)."));
    let measured = page.value("msprofView.measure(60)");
    eprintln!(
        "{measured}; loaded in {} ms",
        page.value("msprofView.loaded_ms")
    );
    for key in ["median", "worst"] {
        assert!(
            measured[key].as_f64().is_some_and(f64::is_finite),
            "{measured}"
        );
    }
    assert_eq!(measured["frames"], 60);
    keep(&mut page, "many-light");
    colours(&mut page, "dark");
    keep(&mut page, "many-dark");

    // A kernel launch in the midst, found by a click, and its surroundings.
    page.value("msprofView.page.input.closeUp(5)");
    page.key("Escape");
    click(&mut page, 5);
    let details = text(&mut page, "#details");
    assert_eq!(state(&mut page)["selected"], 5);
    let expected = page.value(
        "(() => { const d = msprofView.page.timeline.data; return d.facts.names[d.name[5]]; })()",
    );
    for part in [&expected[0], &expected[1], &json!("4321")] {
        assert!(details.contains(part.as_str().expect("text")), "{details}");
    }
    assert!(
        details.contains("duration") && details.contains(" us"),
        "{details}"
    );
    keep(&mut page, "many-near");
    assert_content(&mut page);
}

#[test]
fn more_intervals_than_the_limit_are_said_to_be_missing_from_the_drawing() {
    let Some(browser) = browser() else {
        return;
    };
    let home = Home::new();
    let prof = written(&home, nested(50_000), TYPES);
    let (file, finished) = view(&home, &prof, &["--limit", "4000"]);
    finished.expect_code(0);
    assert!(
        finished.text().contains("of 50000 intervals"),
        "{}",
        finished.text()
    );
    let mut page = Page::open(&browser, &file, true);
    let found = state(&mut page);
    let shown = found["intervals"].as_u64().expect("a count");
    assert!((2_000..=4_000).contains(&shown), "{shown}");
    assert_eq!(found["total"], 50_000);
    let said = format!("{shown} of 50000 intervals are drawn");
    assert!(text(&mut page, "#banners").contains(&said));
    assert_content(&mut page);
}

#[test]
fn a_name_with_markup_is_text_and_nothing_is_loaded_or_run() {
    let Some(browser) = browser() else {
        return;
    };
    let home = Home::new();
    let evil =
        "</script><img src=x onerror=window.harmed=1><script>window.harmed=1</script>{{script}}";
    let mut types = format!("5000_1:{evil}\n");
    let _ = writeln!(types, "5000_2:<a href=javascript:window.harmed=1>'\"&amp;");
    let calls = [
        (RUNTIME, 1, 4321, 0, 5_000),
        (RUNTIME, 2, 4321, 6_000, 9_000),
    ];
    let prof = written(&home, calls.into_iter(), &types);
    let (file, finished) = view(&home, &prof, &[]);
    finished.expect_code(0);
    let mut page = Page::open(&browser, &file, true);
    click(&mut page, 0);
    let details = text(&mut page, "#details");
    assert!(details.contains(evil), "{details}");
    assert!(text(&mut page, "#calls").contains(evil));
    let at = page.value("msprofView.place(1)");
    page.mouse(
        at["x"].as_f64().expect("x"),
        at["y"].as_f64().expect("y"),
        0.0,
    );
    assert!(text(&mut page, "#tip").contains("<a href=javascript:window.harmed=1>'\"&amp;"));
    keep(&mut page, "evil");
    let links = page.value("document.querySelectorAll('img, a, iframe, link, object').length");
    assert_eq!(links, 0);
    assert_eq!(page.value("typeof window.harmed"), "undefined");
    assert_eq!(
        page.value("document.scripts.length"),
        2,
        "facts, and the page's own"
    );
    assert_content(&mut page);
    // Whatever should find a way in is forbidden all the same.
    let tried = "(() => { const made = document.createElement('script'); made.textContent = 'window.harmed = 2'; \
                 document.body.append(made); const image = new Image(); image.src = 'https://example.invalid/'; \
                 return typeof window.harmed; })()";
    assert_eq!(page.value(tried), "undefined");
}

#[test]
fn absurd_times_and_calls_nested_without_end_leave_a_page_that_works() {
    let Some(browser) = browser() else {
        return;
    };
    let home = Home::new();
    let deep = (0..50u64).map(|n| (ACL, 7, 4321, n * 10, 10_000 - n * 10));
    // The end of time, calls that cross, and one that ends before it begins.
    let last = u64::MAX - START_NS - 1;
    let odd = [
        (MODEL, 1, 9, 0, last),
        (MODEL, 1, 9, last, last),
        (NODE, 5, 10, 0, 1_000),
        (NODE, 5, 10, 500, 2_000),
        (NODE, 5, 10, 1_000, 500),
    ];
    let prof = written(&home, deep.chain(odd), TYPES);
    let (file, finished) = view(&home, &prof, &[]);
    finished.expect_code(0);
    let mut page = Page::open(&browser, &file, true);
    let found = state(&mut page);
    assert_eq!(
        (&found["intervals"], &found["lanes"]),
        (&json!(55), &json!(3))
    );
    // 32 rows at most, and of the others one each and two.
    assert_eq!(found["rows"], 32 + 2 + 2);
    for number in [0, 40, 49, 50, 51, 54] {
        page.value(&format!("msprofView.page.input.closeUp({number})"));
        assert!(text(&mut page, "#details").contains("duration"));
        for key in [
            "w",
            "s",
            "d",
            "a",
            "ArrowUp",
            "ArrowDown",
            "ArrowLeft",
            "ArrowRight",
        ] {
            page.value("document.getElementById('timeline').focus()");
            page.key(key);
        }
    }
    page.key("0");
    let measured = page.value("msprofView.measure(12)");
    assert!(
        measured["worst"].as_f64().is_some_and(f64::is_finite),
        "{measured}"
    );
    assert_content(&mut page);
}

#[test]
fn without_scripts_there_are_the_losses_and_the_calls() {
    let Some(browser) = browser() else {
        return;
    };
    let home = Home::new();
    let types = format!("{TYPES}5000_2:<b>bold</b>\n");
    let calls = nested(800).chain([(RUNTIME, 2, 4321, 0, 5)]);
    let prof = written(&home, calls, &types);
    let (file, finished) = view(&home, &prof, &[]);
    finished.expect_code(0);
    let mut page = Page::open(&browser, &file, false);
    let shown = page.value("document.querySelector('noscript').innerText");
    let shown = shown.as_str().expect("text");
    for part in [
        "Records were lost: 7",
        "aclmdlExecute",
        "KernelLaunch",
        "<b>bold</b>",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert_eq!(
        page.value("document.querySelectorAll('noscript tr').length"),
        6
    );
    keep(&mut page, "plain");
    assert_eq!(page.complaints, [] as [&str; 0]);
}

#[test]
fn an_empty_capture_has_a_page_that_says_so() {
    let Some(browser) = browser() else {
        return;
    };
    let home = Home::new();
    let prof = written(&home, std::iter::empty(), "");
    let (file, finished) = view(&home, &prof, &[]);
    finished.expect_code(0);
    let mut page = Page::open(&browser, &file, true);
    assert_eq!(state(&mut page)["intervals"], 0);
    assert_eq!(text(&mut page, "#more"), "No calls were captured.");
    for key in ["w", "s", "a", "d", "0", "ArrowRight", "ArrowDown", "Enter"] {
        page.value("document.getElementById('timeline').focus()");
        page.key(key);
    }
    keep(&mut page, "empty");
    assert_content(&mut page);
}
