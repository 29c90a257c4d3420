//! Proves that the browser of the tests hears what a test asks it about: each fault is planted in a
//! small page and must be caught, and a clean page must be clean.

use std::path::PathBuf;

use crate::browser::{Browser, DESKTOP, PHONE, View};
use serde_json::json;
use tempfile::TempDir;

const CLEAN: &str = "<!doctype html><meta charset=utf-8><title>Clean</title>
<meta name=viewport content='width=device-width'><link rel=icon href='data:,'>
<style>p { color: rgb(1, 2, 3) }
@media (prefers-color-scheme: dark) { p { color: rgb(4, 5, 6) } }
@media print { p { color: rgb(7, 8, 9) } }</style>
<p id=p tabindex=0>text</p><img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC'>
<script>console.log('hello', 42); addEventListener('keydown', e => { p.dataset.key = e.key })
</script>";

/// A page in a folder of its own; the name has characters that an address does not.
fn page(html: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a page #1 ä.html");
    std::fs::write(&path, html).unwrap();
    (folder, path)
}

#[test]
fn a_clean_page_is_clean_and_can_be_asked() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (folder, path) = page(CLEAN);
    let mut page = browser.open_file(&path, DESKTOP);
    page.heard().assert_clean();
    assert_eq!(page.heard().console, [("log".to_owned(), "hello 42".to_owned())]);
    assert_eq!(page.evaluate("document.title"), "Clean");
    assert_eq!(page.evaluate("Promise.resolve([innerWidth, 1.5])"), json!([1280, 1.5]));

    page.press("Escape");
    assert_eq!(page.evaluate("p.dataset.key"), "Escape");

    let picture = folder.path().join("a.png");
    page.screenshot(&picture);
    assert!(std::fs::read(picture).unwrap().starts_with(b"\x89PNG\r\n"));
    let pdf = folder.path().join("a.pdf");
    page.print_to_pdf(&pdf);
    assert!(std::fs::read(pdf).unwrap().starts_with(b"%PDF-"));
}

#[test]
fn width_colours_and_medium_are_as_asked() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (_folder, path) = page(CLEAN);
    let dark = View { dark: true, ..PHONE };
    let print = View { print: true, ..DESKTOP };
    for (view, colour) in
        [(DESKTOP, "rgb(1, 2, 3)"), (dark, "rgb(4, 5, 6)"), (print, "rgb(7, 8, 9)")]
    {
        let mut page = browser.open_file(&path, view);
        assert_eq!(page.evaluate("innerWidth"), view.width);
        assert_eq!(page.evaluate("getComputedStyle(p).color"), colour);
    }
    let mut page = browser.open_file(&path, DESKTOP);
    page.show(dark);
    assert_eq!(
        page.evaluate("[innerWidth, getComputedStyle(p).color]"),
        json!([360, "rgb(4, 5, 6)"])
    );
}

#[test]
fn an_error_on_the_console_is_caught() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (_folder, path) =
        page("<link rel=icon href='data:,'><script>console.error('planted', {})</script>");
    let page = browser.open_file(&path, DESKTOP);
    assert_eq!(page.heard().errors(), ["planted Object"]);
    assert!(page.heard().outside().is_empty());
}

#[test]
fn an_exception_is_caught_also_when_it_comes_late() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let html = "<script>setTimeout(() => Promise.reject(new Error('late')), 100);
                throw new TypeError('planted')</script>";
    let (_folder, path) = page(html);
    let page = browser.open_file(&path, DESKTOP);
    let exceptions = &page.heard().exceptions;
    assert_eq!(exceptions.len(), 2, "{exceptions:?}");
    assert!(exceptions[0].contains("TypeError: planted"), "{exceptions:?}");
    assert!(exceptions[1].contains("Error: late"), "{exceptions:?}");
}

#[test]
fn requests_outside_are_caught() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let html = "<style>@font-face { font-family: a; src: url(https://font.invalid/a.woff2) }
                p { font-family: a }</style><p>text</p>
                <img src='https://image.invalid/a.png'><script src='other.js'></script>
                <script>fetch('https://fetch.invalid/').catch(() => {});
                try { new WebSocket('ws://127.0.0.1:1/') } catch {}</script>";
    let (_folder, path) = page(html);
    let page = browser.open_file(&path, DESKTOP);
    let outside = page.heard().outside().join("\n");
    for wanted in
        ["font.invalid", "image.invalid", "fetch.invalid", "/other.js", "ws://127.0.0.1:1"]
    {
        assert!(outside.contains(wanted), "{wanted} is not in:\n{outside}");
    }
    assert!(!page.heard().failures.is_empty());
    assert!(std::panic::catch_unwind(|| page.heard().assert_clean()).is_err());
}

#[test]
fn a_failed_expression_is_not_a_value() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (_folder, path) = page(CLEAN);
    let mut page = browser.open_file(&path, DESKTOP);
    let thrown =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page.evaluate("nothing.x")));
    assert!(thrown.is_err());
    assert_eq!(page.evaluate("1 + 1"), 2);
}
