//! A headless Chromium for tests: opens a page, returns what it logged, threw and requested,
//! evaluates JavaScript in it, and takes pictures.
//!
//! Speaks the DevTools protocol over a pipe: JSON messages, each ended by a NUL byte, to file
//! descriptor 3 and from 4 of the browser (`--remote-debugging-pipe`). No WebSocket, no port, no
//! Node. Protocol: <https://chromedevtools.github.io/devtools-protocol/>.
//!
//! The browser's names resolve nowhere but on this machine, so a test page can ask for an address
//! outside and nothing leaves.

use std::io::{BufRead, BufReader, Result, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// A page is settled when nothing was heard from it for this long.
const QUIET: Duration = Duration::from_millis(300);
/// Longest wait for a page to settle; an animation may never.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// Names of the browser, in the order tried.
const PROGRAMS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Needed as root and in containers; only the project's own pages are opened.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1",
    "about:blank",
];

/// What is asked of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Width of the window in CSS pixels.
    pub(crate) width: u32,
    /// Height of the window in CSS pixels.
    pub(crate) height: u32,
    /// `prefers-color-scheme: dark`.
    pub(crate) dark: bool,
    /// `@media print`.
    pub(crate) print: bool,
}

/// A desktop window, light.
pub(crate) const DESKTOP: View = View { width: 1280, height: 900, dark: false, print: false };
/// A telephone, held upright.
pub(crate) const PHONE: View = View { width: 360, height: 740, dark: false, print: false };

/// A running browser. Ended when dropped.
pub(crate) struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    sent: u64,
    /// Profile and standard error; goes with the browser.
    folder: TempDir,
}

/// An open page.
pub(crate) struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
    heard: Heard,
}

/// What a page said and asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// Calls of `console.*` and the browser's own log: level and text.
    pub(crate) console: Vec<(String, String)>,
    /// Uncaught exceptions.
    pub(crate) exceptions: Vec<String>,
    /// Every address asked for, the page's own first.
    pub(crate) requests: Vec<String>,
    /// Addresses asked for in vain, and why.
    pub(crate) failures: Vec<(String, String)>,
}

impl Heard {
    /// Messages of level error or warning.
    pub(crate) fn errors(&self) -> Vec<&str> {
        let errors = self.console.iter().filter(|(level, _)| is_bad(level));
        errors.map(|(_, text)| text.as_str()).collect()
    }

    /// Addresses that are not in the page itself: neither `data:` nor `blob:`, nor the page.
    pub(crate) fn outside(&self) -> Vec<&str> {
        let is_inside = |url: &str| url.starts_with("data:") || url.starts_with("blob:");
        let others = self.requests.iter().skip(1);
        others.map(String::as_str).filter(|url| !is_inside(url)).collect()
    }

    /// Panics unless the page logged no error or warning, threw nothing and asked for nothing.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        assert!(self.exceptions.is_empty(), "exceptions: {:#?}", self.exceptions);
        assert!(self.errors().is_empty(), "console: {:#?}", self.errors());
        assert!(self.outside().is_empty(), "asked for: {:#?}", self.outside());
        assert!(self.failures.is_empty(), "asked for in vain: {:#?}", self.failures);
    }
}

fn is_bad(level: &str) -> bool {
    matches!(level, "error" | "warning" | "assert")
}

/// The browser that is installed. `None` where a test may be left out: never under `CI=true`.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let mut candidates = PROGRAMS.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    let found = candidates.find(|path| path.is_file());
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(found.is_some() || !is_ci, "no Chromium on PATH: run `make deps`");
    if found.is_none() {
        eprintln!("skipped: no Chromium on PATH; run `make deps`");
    }
    found
}

impl Browser {
    /// Starts the browser. `None` where a test may be left out, see [`program`].
    pub(crate) fn start() -> Option<Self> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("rtproof-browser-").tempdir().unwrap();
        let stderr = std::fs::File::create(folder.path().join("stderr")).unwrap();
        // The shell moves our pipes to 3 and 4, where the browser looks for them.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .arg(program)
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .args(ARGUMENTS)
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .expect("/bin/sh runs");
        let to = child.stdin.take();
        let mut pipe = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|bytes| bytes > 0) {
                message.pop_if(|byte| *byte == 0);
                let Ok(value) = serde_json::from_slice(&message) else {
                    break;
                };
                message.clear();
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Some(Self { child, to, from, sent: 0, folder })
    }

    /// Opens an address and waits until the page has settled.
    pub(crate) fn open(&mut self, url: &str, view: View) -> Page<'_> {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", target);
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let mut page = Page { browser: self, session, heard: Heard::default() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.show(view);
        // What about:blank asked for is not the page's.
        page.heard = Heard::default();
        let answer = page.call("Page.navigate", json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{url}: {}", answer["errorText"]);
        page.wait_until_loaded();
        page.settle();
        page
    }

    /// Opens a file.
    pub(crate) fn open_file(&mut self, path: &Path, view: View) -> Page<'_> {
        let path = std::path::absolute(path).unwrap();
        let url: String = path.to_str().unwrap().bytes().map(url_byte).collect();
        self.open(&format!("file://{url}"), view)
    }

    /// Calls a method of the browser and returns its result.
    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(None, method, params);
        self.answer(id, method, &mut |_| {})
    }

    fn send(&mut self, session: Option<&str>, method: &str, params: Value) -> u64 {
        if let Err(error) = self.try_send(session, method, params) {
            panic!("{method}: {error}; the browser said:\n{}", self.stderr());
        }
        self.sent
    }

    fn try_send(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<()> {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.to.as_mut().expect("open until dropped").write_all(&bytes)
    }

    /// Waits for the answer to a call; hands over the events that come before it.
    fn answer(&mut self, id: u64, method: &str, event: &mut dyn FnMut(Value)) -> Value {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.from.recv_timeout(left) {
                Ok(mut message) if message["id"] == id => {
                    assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                    return message["result"].take();
                }
                Ok(message) => event(message),
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer in {ANSWER_MAX:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("{method}: the browser is gone; it said:\n{}", self.stderr())
                }
            }
        }
    }

    fn stderr(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when its pipe closes; its helpers are in its process group.
        self.to = None;
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(group) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        // A test may be failing already: nothing is waited for, nothing is complained of.
        let _ = self.browser.try_send(Some(&self.session), "Page.close", json!({}));
    }
}

impl Page<'_> {
    /// What the page said and asked for until now.
    pub(crate) fn heard(&self) -> &Heard {
        &self.heard
    }

    /// Calls a method of the protocol on this page and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.browser.send(Some(&self.session), method, params);
        let (session, heard) = (&self.session, &mut self.heard);
        self.browser.answer(id, method, &mut |event| heard.note(session, &event))
    }

    /// Changes window, colours and medium.
    pub(crate) fn show(&mut self, view: View) {
        let metrics = json!({
            "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if view.dark { "dark" } else { "light" };
        let media = json!({
            "media": if view.print { "print" } else { "screen" },
            "features": [{ "name": "prefers-color-scheme", "value": scheme }],
        });
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Value of a JavaScript expression; promises are waited for.
    ///
    /// # Panics
    /// When the expression throws.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut answer = self.call("Runtime.evaluate", params);
        let exception = &answer["exceptionDetails"];
        assert!(exception.is_null(), "{expression}: {}", exception_text(exception));
        answer["result"]["value"].take()
    }

    /// Presses and releases a key, named as in `KeyboardEvent.key`.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "End" => 35,
            "Home" => 36,
            _ => 0,
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let params = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", params);
        }
        self.settle();
    }

    /// Moves the pointer to a place of the window.
    pub(crate) fn point(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
    }

    /// Clicks at a place of the window.
    pub(crate) fn click(&mut self, at: (f64, f64)) {
        self.drag(at, at);
    }

    /// Presses the button at one place of the window and releases it at another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from, false);
        self.mouse("mousePressed", from, true);
        if from != to {
            let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
            self.mouse("mouseMoved", middle, true);
            self.mouse("mouseMoved", to, true);
        }
        self.mouse("mouseReleased", to, true);
        self.settle();
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), pressed: bool) {
        let button = if pressed { "left" } else { "none" };
        let params = json!({
            "type": kind, "x": x, "y": y, "button": button, "buttons": u8::from(pressed),
            "clickCount": u8::from(pressed && kind != "mouseMoved"),
        });
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Middle of an element, as a place of the window; it is scrolled into view.
    #[track_caller]
    pub(crate) fn middle(&mut self, selector: &str) -> (f64, f64) {
        let place = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector('{selector}');
               e.scrollIntoView({{ block: 'center', behavior: 'instant' }});
               const box = e.getBoundingClientRect();
               return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        let number = |i: usize| place[i].as_f64().expect("a number");
        (number(0), number(1))
    }

    /// Writes a picture of the whole page as PNG.
    pub(crate) fn screenshot(&mut self, path: &Path) {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let clip = json!({
            "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1,
        });
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let answer = self.call("Page.captureScreenshot", params);
        write_base64(path, &answer["data"]);
    }

    /// Writes the page as it would be printed, on A4; returns the number of sheets.
    pub(crate) fn print_to_pdf(&mut self, path: &Path) -> usize {
        // A medium that is emulated would be printed.
        self.call("Emulation.setEmulatedMedia", json!({ "media": "", "features": [] }));
        let params = json!({ "printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69 });
        let answer = self.call("Page.printToPDF", params);
        write_base64(path, &answer["data"]);
        let bytes = decode_base64(answer["data"].as_str().expect("base64 text"));
        let text = String::from_utf8_lossy(&bytes);
        text.matches("/Type /Page").count() - text.matches("/Type /Pages").count()
    }

    /// Listens until the page has been quiet for a while.
    pub(crate) fn settle(&mut self) {
        let deadline = Instant::now() + SETTLE_MAX;
        while Instant::now() < deadline {
            match self.browser.from.recv_timeout(QUIET) {
                Ok(event) => self.heard.note(&self.session, &event),
                Err(_) => return,
            }
        }
    }

    fn wait_until_loaded(&mut self) {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.browser.from.recv_timeout(left).expect("the page loads");
            self.heard.note(&self.session, &event);
            let is_ours = event["sessionId"] == self.session.as_str();
            if is_ours && event["method"] == "Page.loadEventFired" {
                return;
            }
        }
    }
}

impl Heard {
    fn note(&mut self, session: &str, event: &Value) {
        if event["sessionId"] != session {
            return;
        }
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" => {
                let arguments = params["args"].as_array().into_iter().flatten();
                let words: Vec<_> = arguments.map(argument_text).collect();
                self.console.push((text(&params["type"]), words.join(" ")));
            }
            "Log.entryAdded" => {
                let entry = &params["entry"];
                let words = format!("{} {}", text(&entry["text"]), text(&entry["url"]));
                self.console.push((text(&entry["level"]), words.trim().to_owned()));
            }
            "Runtime.exceptionThrown" => {
                self.exceptions.push(exception_text(&params["exceptionDetails"]));
            }
            "Network.requestWillBeSent" => self.requests.push(text(&params["request"]["url"])),
            "Network.webSocketCreated" => self.requests.push(text(&params["url"])),
            "Network.loadingFailed" => {
                let what = text(&params["type"]);
                self.failures.push((what, text(&params["errorText"])));
            }
            _ => {}
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn argument_text(argument: &Value) -> String {
    match &argument["value"] {
        Value::Null => text(&argument["description"]),
        Value::String(value) => value.clone(),
        value => value.to_string(),
    }
}

fn exception_text(details: &Value) -> String {
    match &details["exception"]["description"] {
        Value::String(description) => description.clone(),
        _ => text(&details["text"]),
    }
}

/// A byte of a path, encoded for an address.
fn url_byte(byte: u8) -> String {
    match byte {
        b'/' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

fn write_base64(path: &Path, data: &Value) {
    let bytes = decode_base64(data.as_str().expect("base64 text"));
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn decode_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("{byte:#x} is not base64"),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}
