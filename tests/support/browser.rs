//! A headless Chromium with one page, spoken to over its pipe (the DevTools protocol), where one is installed.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A browser takes seconds to start, on a loaded machine many.
const LIMIT: Duration = Duration::from_secs(120);
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The browser's program; `None`, with a line that says so, where there is none.
pub fn browser() -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&dirs)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        super::skip::skipped("there is no Chromium, so no page is looked at");
    }
    found
}

/// A page that is open in a browser of its own.
pub struct Page {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    last: u64,
    /// What the browser's console, its log and uncaught exceptions said.
    pub complaints: Vec<String>,
    _home: tempfile::TempDir,
}

impl Page {
    /// Opens a file, and waits until it is loaded. `scripts` says whether they may run.
    pub fn open(browser: &Path, file: &Path, scripts: bool) -> Page {
        let home = tempfile::tempdir().expect("a home");
        // The browser's pipe is descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
            ])
            .arg(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--window-size=1300,900",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", home.path().display()))
            .arg("about:blank")
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a browser");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut page = Page {
            commands: child.stdin.take().expect("a pipe"),
            child,
            messages,
            session: String::new(),
            last: 0,
            complaints: Vec::new(),
            _home: home,
        };
        let made = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = page.call("Target.attachToTarget", target);
        page.session = attached["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        for domain in ["Runtime", "Log", "Page", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let disabled = json!({ "value": !scripts });
        page.call("Emulation.setScriptExecutionDisabled", disabled);
        let url = format!("file://{}", file.display());
        page.call("Page.navigate", json!({ "url": url }));
        page.wait_for("Page.loadEventFired");
        page
    }

    /// Calls a method; its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut command = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            command["sessionId"] = self.session.clone().into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser runs");
        let wanted = self.last;
        let answer = self.receive(|message| message["id"] == wanted);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn wait_for(&mut self, event: &str) {
        self.receive(|message| message["method"] == event);
    }

    #[track_caller]
    fn receive(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left);
            let message = message.expect("the browser answers in time");
            let method = message["method"].as_str().unwrap_or_default();
            let complains = match method {
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => true,
                // The page itself alone.
                "Network.requestWillBeSent" => message["params"]["type"] != "Document",
                "Page.javascriptDialogOpening" => true,
                _ => false,
            };
            if complains {
                self.complaints.push(message.to_string());
            }
            if wanted(&message) {
                return message;
            }
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Presses and releases the mouse, or turns its wheel by so much when that is not 0.
    pub fn mouse(&mut self, x: f64, y: f64, wheel: f64) {
        let at = |kind: &str, more: Value| {
            let mut event =
                json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        self.call(
            "Input.dispatchMouseEvent",
            at("mouseMoved", json!({ "button": "none" })),
        );
        if wheel != 0.0 {
            let turn = json!({ "button": "none", "deltaX": 0, "deltaY": wheel });
            self.call("Input.dispatchMouseEvent", at("mouseWheel", turn));
            return;
        }
        self.call("Input.dispatchMouseEvent", at("mousePressed", json!({})));
        self.call("Input.dispatchMouseEvent", at("mouseReleased", json!({})));
    }

    /// Presses a key of one character, or a named one.
    pub fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key });
            if key.len() == 1 && kind == "keyDown" {
                event["text"] = key.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// The page as it is seen, PNG in base64.
    pub fn screenshot(&mut self) -> String {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        shot["data"].as_str().expect("a picture").to_owned()
    }
}

impl Drop for Page {
    /// Its children end with it, and leave the home alone when they have.
    fn drop(&mut self) {
        let close = json!({ "id": self.last + 1, "method": "Browser.close" });
        let _ = self.commands.write_all(format!("{close}\0").as_bytes());
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
