//! Chromium without a window, driven by the DevTools protocol over two pipes.
//! <https://chromedevtools.github.io/devtools-protocol/>

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The names that distributions give it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The protocol is spoken on descriptors 3 and 4. A browser that hangs is ended.
const START: &str = r#"exec timeout 120 "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// One browser with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    /// The page that calls are meant for; at first none.
    session: Option<String>,
    /// Errors that the page reported.
    errors: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts one, or says by `None` that none is installed.
    pub fn start() -> Option<io::Result<Browser>> {
        let found = |name: &&&str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).exists())
        };
        NAMES.iter().find(found).map(|name| Browser::launch(name))
    }

    fn launch(name: &str) -> io::Result<Browser> {
        let profile = tempfile::tempdir()?;
        let mut process = Command::new("sh")
            .args(["-c", START, name, "--headless", "--remote-debugging-pipe", "--disable-gpu"])
            // Root has no sandbox; the pages are weir's own, and no name leads anywhere.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-extensions"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (to, from) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        let (from, errors) = (BufReader::new(from), Vec::new());
        let mut browser = Browser { process, to, from, calls: 0, session: None, errors, _profile: profile };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach)?;
        browser.session = attached["sessionId"].as_str().map(String::from);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}))?;
        }
        Ok(browser)
    }

    /// Calls a method and waits for its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> io::Result<Value> {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{call}\0").as_bytes())?;
        let mut answer = self.message()?;
        while answer["id"] != self.calls {
            answer = self.message()?;
        }
        match answer.get("error") {
            Some(error) => Err(io::Error::other(format!("{method}: {error}"))),
            None => Ok(answer["result"].take()),
        }
    }

    /// Opens an address, waits until the page is there, and returns the errors that it reported meanwhile.
    pub fn open(&mut self, address: &str) -> io::Result<Vec<String>> {
        self.call("Page.navigate", json!({"url": address}))?;
        while self.message()?["method"] != "Page.loadEventFired" {}
        Ok(std::mem::take(&mut self.errors))
    }

    /// The next message; an error among the page's events is remembered.
    fn message(&mut self) -> io::Result<Value> {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes)?;
        if bytes.pop() != Some(0) {
            return Err(io::Error::other("the browser ended"));
        }
        let message: Value = serde_json::from_slice(&bytes)?;
        let parameters = &message["params"];
        let is_error = match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => parameters["type"] == "error",
            "Log.entryAdded" => parameters["entry"]["level"] == "error",
            _ => false,
        };
        if is_error {
            self.errors.push(parameters.to_string());
        }
        Ok(message)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        // One that does not listen any more is ended by its time limit.
        let _ = self.call("Browser.close", json!({}));
        let _ = self.process.wait();
    }
}
