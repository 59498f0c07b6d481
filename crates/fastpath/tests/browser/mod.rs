//! A page in a real browser, if there is one.

use std::path::Path;
use std::process::Command;

/// The browser's name; `None`, and it is said, if none is installed.
pub(crate) fn find() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found = names.into_iter().find(runs);
    if found.is_none() {
        println!("skipped, because no Chromium is installed");
    }
    found
}

/// Loads a page in a window of that width, lets its scripts run, and expects them to leave `fine` in the element `answer` and
/// nothing in the console.
pub(crate) fn exercise(browser: &str, file: &Path, width: u32, dark: bool, scratch: &Path) {
    let profile = scratch.join(format!("profile-{width}-{dark}"));
    let run = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser runs");
    let dom = String::from_utf8_lossy(&run.stdout);
    let log = String::from_utf8_lossy(&run.stderr);
    let said: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(said.is_empty(), "{width}: {said:?}");
    let answer = dom.split("<output id=\"answer\">").nth(1).and_then(|rest| rest.split('<').next());
    assert_eq!(answer, Some("fine"), "{width}, dark: {dark}");
}
