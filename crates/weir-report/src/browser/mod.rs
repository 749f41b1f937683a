//! Every kind of page in a real browser: on a desk, on a phone and on paper, by day and by night. `WEIR_PAGES=FOLDER`
//! keeps the pages.
#![allow(
    clippy::disallowed_methods,
    reason = "the test starts a browser and writes pages for it; the library does not"
)]

mod client;
mod pages;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use client::Browser;
use serde_json::{Value, json};

/// What is looked at: the medium, as the check in the page knows it, its width and the scheme of colours.
const VIEWS: [(&str, u32, &str); 5] = [
    ("phone", 390, "light"),
    ("phone", 390, "dark"),
    ("desk", 1200, "light"),
    ("desk", 1200, "dark"),
    // Bars for scrolling take no room on a phone and on paper. A4 without its margins of 14 mm, at 96 px an inch.
    ("print", 688, "light"),
];

/// What is wrong with the open page in one view.
fn complaints(browser: &mut Browser, (medium, width, scheme): (&str, u32, &str)) -> io::Result<Vec<String>> {
    let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": medium != "desk"});
    browser.call("Emulation.setDeviceMetricsOverride", size)?;
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
    let media = if medium == "print" { "print" } else { "screen" };
    browser.call("Emulation.setEmulatedMedia", json!({"media": media, "features": features}))?;
    let check =
        format!("({})('{medium}')", include_str!("check.js").split_once('\n').map_or("", |(_, code)| code));
    let answer = browser.call("Runtime.evaluate", json!({"expression": check, "returnByValue": true}))?;
    match &answer["result"]["value"] {
        Value::Array(all) => {
            Ok(all.iter().map(|text| text.as_str().unwrap_or_default().to_string()).collect())
        }
        _ => Err(io::Error::other(format!("the check failed: {}", answer["exceptionDetails"]))),
    }
}

#[test]
fn every_page_is_read_with_ease_in_a_browser() {
    let Some(browser) = Browser::start() else {
        let _ = writeln!(io::stderr(), "not run: every_page_is_read_with_ease_in_a_browser lacks chromium");
        return;
    };
    let mut browser = browser.unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("WEIR_PAGES").map_or(temporary.path().to_path_buf(), PathBuf::from);
    let mut found = Vec::new();
    for (name, page) in pages::all() {
        let path = folder.join(format!("{name}.html"));
        fs::write(&path, page).unwrap();
        let errors = browser.open(&format!("file://{}", path.display())).unwrap();
        found.extend(errors.iter().map(|error| format!("{name}: {error}")));
        for view in VIEWS {
            let (medium, width, scheme) = view;
            let all = complaints(&mut browser, view).unwrap();
            found.extend(all.iter().map(|text| format!("{name}, {medium} {width} px, {scheme}: {text}")));
        }
    }
    assert!(found.is_empty(), "{} complaints:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_check_complains_about_bad_pages() {
    let Some(browser) = Browser::start() else {
        let _ = writeln!(io::stderr(), "not run: the_check_complains_about_bad_pages lacks chromium");
        return;
    };
    let mut browser = browser.unwrap();
    let wide = "<div style='width:1300px;height:9px'></div>";
    let table =
        "<div class=scroll style='overflow:auto;width:90px'><table><td style='padding:90px'>a</table></div>";
    let text = "<svg viewBox='0 0 9 9' width=99><text x=8 y=8>out of it</text></svg>";
    for (body, expected) in [
        (wide, "px wide in"),
        (table, "a table is cut"),
        (text, "text leaves its drawing"),
        ("<p style='color:#999'>grey</p>", "contrast of 2.85"),
        (
            "<svg viewBox='0 0 99 99' width=99><rect width=99 height=99 /><text y=50>on black</text></svg>",
            "contrast of 1.00",
        ),
        ("<a href='#gone'>link</a>", "a link leads nowhere"),
        ("<p id=a>a</p><p id=a>b</p>", "an id stands twice"),
    ] {
        let page = format!("data:text/html,<!doctype html>{}", body.replace('#', "%23"));
        browser.open(&page).unwrap();
        let found = complaints(&mut browser, ("desk", 1200, "light")).unwrap();
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
    }
    browser.open("data:text/html,<!doctype html><p>good</p>").unwrap();
    assert_eq!(complaints(&mut browser, ("desk", 1200, "dark")).unwrap(), Vec::<String>::new());
    let errors = browser.open("data:text/html,<script>console.error('bad')</script>").unwrap();
    assert!(errors.iter().any(|error| error.contains("bad")), "{errors:?}");
}
