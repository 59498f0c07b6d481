//! The matrix as a page, in a real browser: it filters, sorts, says nothing in the console, and fits a phone.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod browser;

use std::fs;
use std::process::Command;

/// What is done to the page after it has loaded; the answer becomes the text of a new element.
const EXERCISE: &str = r##"<script>
"use strict";
(() => {
  const failures = [];
  const expect = (what, actual, wanted) => {
    if (JSON.stringify(actual) !== JSON.stringify(wanted)) {
      failures.push(`${what}: ${JSON.stringify(actual)}, expected ${JSON.stringify(wanted)}`);
    }
  };
  try {
    const rows = () => [...document.querySelectorAll("#matrix tbody tr")];
    const shown = () => rows().filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
    const all = shown();
    expect("rows at first", all.length, 18);
    const find = document.getElementById("find");
    const type = (text) => { find.value = text; find.dispatchEvent(new Event("input")); };
    type("ubuntu hwe");
    expect("found by two words", shown(), ["ubuntu-2204-hwe", "ubuntu-2404-hwe", "ubuntu-2604-hwe"]);
    expect("sections follow", [...document.querySelectorAll("section:not([hidden])")].length, 3);
    type("no such thing");
    expect("nothing found", shown(), []);
    type("");
    expect("all again", shown().length, 18);
    const box = document.querySelector('input[value="supported"]');
    box.click();
    const verdicts = new Set(rows().filter((row) => !row.hidden).map((row) => row.dataset.verdict));
    expect("supported ones hidden", [...verdicts].sort(), ["blocked", "unsupported"]);
    box.click();
    const kernel = document.querySelectorAll("#matrix thead button")[2];
    kernel.click();
    const order = () => rows().map((row) => row.cells[2].textContent);
    expect("oldest kernel first", order()[0], "4.18.0-553.166.1.el8_10.x86_64");
    kernel.click();
    expect("newest kernel first", order()[0], "7.0.0-34-generic");
    expect("sorted head", kernel.parentElement.getAttribute("aria-sort"), "descending");
    for (const link of document.querySelectorAll("#matrix tbody a")) {
      if (!document.getElementById(link.hash.slice(1))) failures.push(`dead link ${link.hash}`);
    }
    const outside = [...document.querySelectorAll("[src], link[href]")];
    expect("other files", outside.length, 0);
    expect("wider than the window", document.documentElement.scrollWidth > window.innerWidth, false);
  } catch (error) {
    failures.push(String(error));
  }
  const answer = document.createElement("output");
  answer.id = "answer";
  answer.textContent = failures.length ? failures.join("; ") : "fine";
  document.body.append(answer);
})();
</script></body>"##;

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser::find() else { return };
    let made = Command::new(env!("CARGO_BIN_EXE_fastpath"))
        .args(["matrix", "--format", "html", "--published"])
        .output()
        .expect("the program runs");
    assert!(made.status.success());
    let page = String::from_utf8(made.stdout).expect("the page is UTF-8");
    assert_eq!(page.matches("</body>").count(), 1);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page.html");
    fs::write(&file, page.replace("</body>", EXERCISE)).expect("the page is written");
    for width in [1200, 400] {
        browser::exercise(browser, &file, width, false, directory.path());
    }
}
