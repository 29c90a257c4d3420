//! The HTML report of a real run in headless Chromium: complete, silent, and alone.

use std::path::{Path, PathBuf};

use crate::browser::{Browser, DESKTOP, PHONE, Page, View};
use crate::support::{alone, code, files, folder, run, stderr, stdout};
use serde_json::{Value, json};

/// Where screenshots stay for people to look at.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    folder
}

/// A number of each chart: what it says it shows, and what it shows.
fn series(page: &mut Page<'_>, id: &str) -> (u64, u64) {
    let script = format!(
        "(() => {{ const chart = document.querySelector('#{id}');
           return chart && [Number(chart.dataset.series), chart.querySelectorAll('.series').length];
         }})()"
    );
    let found = page.evaluate(&script);
    let number = |i: usize| found[i].as_u64().unwrap_or_else(|| panic!("{id}: {found}"));
    (number(0), number(1))
}

#[test]
fn the_report_is_complete_silent_and_alone() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let _alone = alone();
    let folder = folder();
    let args = ["prove", "--for", "6s", "--period", "200us", "--budget", "100us", "-o", "run"];
    let output = run(folder.path(), &args);
    assert!([2, 3].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
    let path = folder.path().join("run.html");
    let size = path.metadata().expect("the report").len();
    // A dozen pictures of spikes are most of it: up to 90 kB each, where many came between.
    assert!(size < 1_500_000, "{size} bytes");

    let mut page = browser.open_file(&path, DESKTOP);
    page.heard().assert_clean();
    let report: Value = page.evaluate("JSON.parse(document.querySelector('#rtproof-report').text)");
    let cpus = report["cpus"].as_array().expect("CPUs").len() as u64;

    // Verdict first, and in words.
    let answer = page.evaluate("document.querySelector('main').innerText.slice(0, 2000)");
    let text = answer.as_str().expect("text").to_uppercase();
    assert!(text.contains("REFUSED") || text.contains("NOT PROVEN"), "{text}");

    // Short on screen: lists are closed, and a link to what is in one opens it without a script.
    let height = page.evaluate("document.documentElement.scrollHeight");
    assert!(height.as_u64().is_some_and(|px| px < 8_000), "{height} px high");
    page.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    let box_of = "#machine";
    page.call("Page.navigate", json!({ "url": format!("file://{}{box_of}", path.display()) }));
    page.settle();
    page.call("Emulation.setScriptExecutionDisabled", json!({ "value": false }));
    let seen = page.evaluate("document.querySelector('#machine').getBoundingClientRect().height");
    assert!(seen.as_f64().is_some_and(|px| px > 100.0), "a link opens what it leads to: {seen}");
    page.evaluate("document.querySelector('#machine').closest('details').open = false");

    // Every chart is there, shows what it says, and has a text for those who cannot see it.
    for id in ["chart-histogram", "chart-percentile", "chart-heat", "chart-strip"] {
        let (said, shown) = series(&mut page, id);
        assert_eq!(said, shown, "{id}");
        assert!(shown > 0, "{id}");
        let label = page.evaluate(&format!(
            "(() => {{ const c = document.querySelector('#{id}');
               const svg = c.matches('svg') ? c : c.querySelector('svg');
               return [svg.getAttribute('role'), svg.querySelector('title')?.textContent.length > 0];
             }})()"
        ));
        assert_eq!(label, json!(["img", true]), "{id}");
    }
    let per_cpu = page.evaluate(
        "new Set([...document.querySelectorAll('#chart-histogram .series[data-cpu]')]
            .map(series => series.dataset.cpu)).size",
    );
    assert_eq!(per_cpu.as_u64(), Some(cpus), "one histogram line per CPU");
    let strip = page.evaluate("document.querySelectorAll('#chart-strip .series').length");
    assert_eq!(strip.as_u64(), Some(cpus), "one row per CPU");
    let broken = page.evaluate(
        "[...document.querySelectorAll('svg')].map(svg => svg.outerHTML).join('')
            .match(/NaN|Infinity|undefined/)",
    );
    assert_eq!(broken, Value::Null);
    let ids = page.evaluate(
        "(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
           return ids.length - new Set(ids).size; })()",
    );
    assert_eq!(ids, 0, "ids are unique");
    page.screenshot(&pictures().join("report-desktop.png"));

    // Printed, it is verdict and histogram, then causes, fixes, conditions; all of it on demand.
    let pdf = pictures().join("report.pdf");
    assert_eq!(page.print_to_pdf(&pdf), 2, "two sheets");
    page.evaluate("document.querySelector('#print-all').click()");
    let everything = page.print_to_pdf(&folder.path().join("everything.pdf"));
    assert!((6..200).contains(&everything), "{everything} sheets");
    page.evaluate("document.querySelector('#print-all').click()");
    let open = page.evaluate("document.querySelectorAll('details[open].part').length");
    assert_eq!(open, 0, "what was opened for printing is closed again");

    for view in [PHONE, View { dark: true, ..DESKTOP }, View { dark: true, ..PHONE }] {
        page.show(view);
        let wide = page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert!(wide.as_f64().is_some_and(|wide| wide <= 0.0), "{view:?} scrolls sideways: {wide}");
        let name =
            format!("report-{}-{}.png", view.width, if view.dark { "dark" } else { "light" });
        page.screenshot(&pictures().join(name));
    }
    page.heard().assert_clean();
}

#[test]
fn an_altered_record_is_marked_in_its_report() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let _alone = alone();
    let folder = folder();
    run(folder.path(), &["prove", "--for", "1s", "--load", "idle", "-o", "run"]);
    let path = folder.path().join("run.rtproof");
    let mut bytes = std::fs::read(&path).expect("the record");
    let text = b"timer-wakeup";
    let at = bytes.windows(text.len()).position(|part| part == text).expect("the workload's name");
    bytes[at] = b'T';
    std::fs::write(&path, bytes).expect("an edited record");
    let args = ["report", "run.rtproof", "--accept-altered", "--html", "altered.html"];
    let output = run(folder.path(), &args);
    assert_ne!(code(&output), 1, "{}", stderr(&output));
    let html = files(folder.path(), "altered.html").remove(0);
    let mut page = browser.open_file(&html, DESKTOP);
    page.heard().assert_clean();
    let alert = page.evaluate("document.querySelector('[role=alert]').innerText");
    assert!(alert.as_str().is_some_and(|text| text.contains("altered")), "{alert}");
}

/// Times that the pictures over time show, in nanoseconds.
fn stretch(page: &mut Page<'_>, id: &str) -> (f64, f64) {
    let axis = page.evaluate(&format!("document.querySelector('#{id}').dataset.x"));
    let axis: Vec<&str> = axis.as_str().expect("an axis").split(' ').collect();
    (axis[1].parse().expect("a time"), axis[2].parse().expect("a time"))
}

fn text(page: &mut Page<'_>, script: &str) -> String {
    page.evaluate(script).as_str().unwrap_or_default().replace(['\u{202f}', '\u{a0}'], " ")
}

#[test]
fn dots_are_described_followed_and_zoomed() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let _alone = alone();
    let folder = folder();
    // A budget that nothing keeps: every kind of dot is there on any machine.
    let args = ["prove", "--for", "3s", "--budget", "2us", "--load", "idle", "-o", "run"];
    let output = run(folder.path(), &args);
    assert_ne!(code(&output), 1, "{}", stderr(&output));
    let path = folder.path().join("run.html");
    let mut page = browser.open_file(&path, DESKTOP);
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'");

    // A dot has its class's colour, and a text under the pointer that is its name as well.
    let all = page.evaluate("document.querySelectorAll('#chart-spikes .dot').length");
    assert!(all.as_u64().is_some_and(|n| n > 1), "{all} dots");
    let coloured = page.evaluate(
        "[...document.querySelectorAll('#chart-spikes .dot')]
            .every(dot => /\\b(s[0-7]|grey)\\b/.test(dot.getAttribute('class')))",
    );
    assert_eq!(coloured, true);
    page.evaluate("[...document.querySelectorAll('#chart-spikes .dot')].at(-1).id = 'worst'");
    let place = page.middle("#worst");
    page.point(place);
    let tip = text(&mut page, "document.querySelector('.tip').textContent");
    assert!(tip.contains(" s, CPU ") && tip.contains(": "), "{tip}");
    let name = text(&mut page, "document.querySelector('#worst').getAttribute('aria-label')");
    assert_eq!(name, tip);

    // So has a cell of the picture below: which CPU, when, and its worst case.
    let place = page.middle("#chart-strip .series path");
    page.point(place);
    let tip = text(&mut page, "document.querySelector('.tip').textContent");
    assert!(tip.starts_with("CPU ") && tip.contains("worst"), "{tip}");

    // By keys: one stop of the tabulator, arrows through all in order of time.
    let stops = page.evaluate("document.querySelectorAll('#chart-spikes [tabindex=\"0\"]').length");
    assert_eq!(stops, 1);
    page.evaluate("document.querySelector('#chart-spikes [tabindex=\"0\"]').focus()");
    page.press("Home");
    let at = |page: &mut Page<'_>| {
        let at = text(page, "document.activeElement.dataset.t");
        at.parse::<u64>().unwrap_or_else(|_| panic!("no dot has the focus: {at}"))
    };
    let first = at(&mut page);
    page.press("ArrowRight");
    let second = at(&mut page);
    assert!(first <= second);
    let tip_text = text(&mut page, "document.querySelector('.tip').textContent");
    assert_eq!(tip_text, text(&mut page, "document.activeElement.getAttribute('aria-label')"));

    // Drag over a picture: all pictures over time show that stretch, and the way back is a button.
    let whole = stretch(&mut page, "chart-spikes");
    let (x, y) = page.middle("#chart-spikes");
    page.drag((x - 100.0, y), (x + 200.0, y));
    let part = stretch(&mut page, "chart-spikes");
    assert!(part.0 > whole.0 && part.1 < whole.1, "{part:?} of {whole:?}");
    for id in ["chart-strip", "chart-heat"] {
        assert_eq!(stretch(&mut page, id), part, "{id}");
    }
    let range = text(&mut page, "document.querySelector('.range').textContent");
    assert!(range.contains(" s to ") && range.contains("largest"), "{range}");
    let (x, y) = page.middle(".tools button:last-of-type");
    page.click((x, y));
    assert_eq!(stretch(&mut page, "chart-spikes"), whole);
    // By keys too.
    page.evaluate("document.querySelector('#chart-spikes [tabindex=\"0\"]').focus()");
    page.press("+");
    let near = stretch(&mut page, "chart-spikes");
    assert!(near.1 - near.0 < 0.6 * (whole.1 - whole.0), "{near:?}");
    page.press("Escape");
    assert_eq!(stretch(&mut page, "chart-spikes"), whole);

    the_histogram_has_two_axes_and_tells_its_bins(&mut page);

    // A click on a dot with a picture opens it; from there it goes back.
    if page.evaluate("document.querySelector('#chart-spikes a.dot') !== null") == true {
        page.evaluate("[...document.querySelectorAll('#chart-spikes a.dot')].at(-1).id = 'shown'");
        let place = page.middle("#shown");
        page.click(place);
        let opened = page.evaluate("document.querySelector(location.hash).closest('details').open");
        assert_eq!(opened, true);
        let drawn = page.evaluate(
            "document.querySelector(location.hash).closest('details')
                .querySelector('svg.spike').getBoundingClientRect().height > 50",
        );
        assert_eq!(drawn, true);
    } else {
        eprintln!("no spike was explained here: what a dot leads to is left out");
    }
    page.heard().assert_clean();
}

fn the_histogram_has_two_axes_and_tells_its_bins(page: &mut Page<'_>) {
    let seen = |page: &mut Page<'_>| {
        page.evaluate(
            "['chart-histogram', 'chart-histogram-linear']
                .map(id => document.getElementById(id).getBoundingClientRect().height > 100)",
        )
    };
    assert_eq!(seen(page), json!([true, false]));
    let place = page.middle("#axes-linear");
    page.click(place);
    assert_eq!(seen(page), json!([false, true]), "OSADL's axes");
    let axis = text(page, "document.querySelector('#chart-histogram-linear').dataset.x");
    assert!(axis.starts_with("linear 0.000 "), "{axis}");
    let place = page.middle("#axes-log");
    page.click(place);

    // The bin with the most wake-ups of the first CPU, as drawn in the picture.
    let place = page.evaluate(
        "(() => { const svg = document.querySelector('#chart-histogram');
           svg.scrollIntoView({ block: 'center', behavior: 'instant' });
           const edges = svg.querySelector('[data-edges]').dataset.edges.split(' ').map(Number);
           const pairs = svg.querySelector('.series').dataset.n.split(' ').map(p => p.split(':').map(Number));
           const [bin, n] = pairs.sort((a, b) => b[1] - a[1])[0];
           const [, low, high, from, to] = svg.dataset.x.split(' ').map(Number);
           const x = from + (to - from) * Math.log((edges[bin] + edges[bin + 1]) / 2 / low) / Math.log(high / low);
           const at = new DOMPoint(x, 200).matrixTransform(svg.getScreenCTM());
           return [at.x, at.y, n]; })()",
    );
    let number = |i: usize| place[i].as_f64().expect("a number");
    page.point((number(0), number(1)));
    let tip = text(page, "document.querySelector('.tip').textContent").replace(' ', "");
    assert!(tip.contains(&format!(":{}", number(2))) && tip.contains("CPU"), "{tip} {place}");
}
