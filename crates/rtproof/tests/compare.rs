//! `rtproof compare`: S0's files say what they hold and no more, records decide in groups alone,
//! and what is not alike is refused.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::browser::{Browser, DESKTOP, PHONE, View};
use crate::support::{
    FAILED, REFUSED, USAGE, alone, code, expect_code, folder, run, stderr, stdout,
};
use serde_json::Value;

/// The ten files of S0, with the names of their figures; says so where they are not.
const TEN: [(&str, &str); 10] = [
    ("stock-idle", "non-rt-cyclictest.log"),
    ("rt-idle", "idle-cyclictest.log"),
    ("stock-stress", "non-rt-stress-cyclictest.log"),
    ("rt-stress", "stress-cyclictest.log"),
    ("no-multipathd", "rt-stress-no-multipathd-cyclictest.log"),
    ("memory", "memory-cyclictest.log"),
    ("stress-memory", "stress-memory-cyclictest.log"),
    ("hackbench", "hackbench-cyclictest.log"),
    ("hdd", "hdd-cyclictest.log"),
    ("cpu-hdd-hackbench", "cpu-hdd-hackbench-cyclictest.log"),
];

fn captures(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/captures");
    let captures = std::env::var_os("RTPROOF_CAPTURES").map_or(beside.into(), PathBuf::from);
    let path = captures.join(name);
    if !path.exists() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Arguments for some of the ten, each `NAME=FILE`.
fn named(folder: &Path, names: &[&str]) -> Vec<String> {
    let file = |name: &&str| {
        let (_, file) = TEN.iter().find(|(known, _)| known == name).expect("one of the ten");
        format!("{name}={}", folder.join(file).display())
    };
    names.iter().map(file).collect()
}

fn compare(folder: &Path, files: &[String], more: &[&str]) -> std::process::Output {
    let mut args: Vec<&str> = vec!["compare"];
    args.extend(files.iter().map(String::as_str));
    args.extend(more);
    run(folder, &args)
}

fn json(folder: &Path, files: &[String], more: &[&str]) -> Value {
    let output = compare(folder, files, &[more, &["--json"]].concat());
    expect_code(&output, 0);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A value of the table, of a group.
fn value(comparison: &Value, statistic: &str, group: usize) -> Option<f64> {
    let lines = comparison["table"].as_array().expect("lines");
    let line = lines.iter().find(|line| line["statistic"] == statistic)?;
    line["cells"][group]["value"].as_f64()
}

#[test]
fn removing_multipathd_did_not_improve_the_quantiles_but_the_far_tail() {
    let Some(data) = captures("rpi4-stock-vs-rt") else { return };
    let folder = folder();
    let files = named(&data, &["rt-stress", "no-multipathd"]);
    let comparison = json(folder.path(), &files, &[]);
    assert_eq!(comparison["schema"], "rtproof/compare/3");
    assert_eq!(comparison["result"], "cannot_decide");
    let sentence = comparison["sentence"].as_str().expect("a sentence");
    for part in [
        "single runs, one after the other, drift not excluded",
        "no-multipathd did not lower p99.9 (55 → 57 µs) nor p99.99 (69 → 76 µs)",
        "only the far tail is lower: p99.999 104 → 92 µs",
        "max 279 → 130 µs",
    ] {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
    assert!(!sentence.contains("138"));
    assert_eq!(value(&comparison, "max", 1), Some(130_000.0));
    let output = compare(folder.path(), &files, &["--fail-if-worse"]);
    expect_code(&output, 3);
}

#[test]
fn the_ten_files_are_one_page_with_the_figures_of_the_article() {
    let Some(data) = captures("rpi4-stock-vs-rt") else { return };
    let folder = folder();
    let names = TEN.map(|(name, _)| name);
    let figures = [
        "--html",
        "ten.html",
        "--interval",
        "200us",
        "--duration",
        "15m",
        "--figure",
        "stock-idle,rt-idle",
        "--figure",
        "stock-stress,rt-stress",
        "--figure",
        "rt-stress,no-multipathd",
    ];
    let comparison = json(folder.path(), &named(&data, &names), &figures);
    for (group, max_us, p999_us) in
        [(0, 70, 15), (1, 88, 13), (2, 717, 193), (3, 279, 55), (4, 130, 57), (6, 288, 45)]
    {
        assert_eq!(value(&comparison, "max", group), Some(f64::from(max_us * 1000)));
        assert_eq!(value(&comparison, "p99.9", group), Some(f64::from(p999_us * 1000)));
    }
    let sampled = |group: usize| comparison["groups"][group]["runs"][0]["sampled"].as_u64();
    assert_eq!((sampled(0), sampled(2)), (Some(17_999_635), Some(17_982_363)));
    // The law of cyclictest's data: what it skipped while it was late.
    let missed = comparison["groups"][2]["runs"][0]["threads"][0]["missed"].as_u64();
    assert_eq!(missed, Some(17_260));

    let Some(mut browser) = Browser::start() else { return };
    let path = folder.path().join("ten.html");
    let mut page = browser.open_file(&path, DESKTOP);
    page.heard().assert_clean();
    for id in
        ["chart-overlay", "chart-later", "chart-figure-0", "chart-figure-1", "chart-figure-2-later"]
    {
        let shown = page.evaluate(&format!(
            "(() => {{ const c = document.querySelector('#{id}');
               return [Number(c.dataset.series), c.querySelectorAll('.series').length,
                       c.getAttribute('role'), c.querySelector('title').textContent.length > 0];
             }})()"
        ));
        let series = if id.contains("figure") { 2 } else { 10 };
        assert_eq!(shown, serde_json::json!([series, series, "img", true]), "{id}");
    }
    let text = page.evaluate("document.body.innerText");
    let text = text.as_str().expect("text");
    assert!(text.contains("no-multipathd: 130 µs") && !text.contains("138 µs"));
    assert_eq!(page.evaluate("document.querySelectorAll('#runs table')[1].rows.length"), 41);
}

/// A result of cyclictest that started in this minute: ten thousand wake-ups, the slowest of them
/// `times` as late.
fn result(folder: &Path, name: &str, minute: u64, times: u64) -> String {
    // No two runs are the same.
    let bins = [(20 + minute % 3, 9900), (30 * times + minute % 2, 88), (60 * times + minute, 12)];
    let bins: Vec<String> = bins.iter().map(|(us, n)| format!("\"{us}\": {n}")).collect();
    let text = format!(
        "{{\"file_version\": 1, \"cmdline:\": \"cyclictest -D10 -i1000 -p90 -m -q -h400\",
           \"rt_test_version:\": \"2.40\", \"start_time\": \"Sun, 22 Nov 2026 03:{minute:02}:00 +0000\",
           \"end_time\": \"Sun, 22 Nov 2026 03:{minute:02}:10 +0000\", \"return_code\": 0,
           \"num_threads\": 1, \"resolution_in_ns\": 0, \"thread\": {{\"0\": {{
           \"histogram\": {{{}}}, \"cycles\": 10000, \"min\": {}, \"max\": {}, \"avg\": 21.0,
           \"cpu\": 0, \"node\": 0}}}}}}",
        bins.join(", "),
        20 + minute % 3,
        60 * times + minute
    );
    let name = format!("{name}{minute}.json");
    fs::write(folder.join(&name), text).expect("a file");
    name
}

#[test]
fn groups_that_are_worse_fail_a_script_that_asks() {
    let folder = folder();
    let path = folder.path();
    // a b b a a b b a ...: what drifts is in both.
    let (mut off, mut on) = (vec!["--a".to_owned()], vec!["--b".to_owned()]);
    for minute in 0..16 {
        let slow = matches!(minute % 4, 1 | 2);
        let file = result(path, if slow { "b" } else { "a" }, minute, 1 + u64::from(slow));
        if slow { &mut on } else { &mut off }.push(file);
    }
    let groups = [off.clone(), on.clone()].concat();
    let output = compare(path, &groups, &["--names", "off,on", "--fail-if-worse"]);
    expect_code(&output, REFUSED);
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("worse") && text.contains("p99.9"), "{text}");
    // Without --fail-if-worse it is reported, and no failure.
    expect_code(&compare(path, &groups, &[]), 0);
    let comparison = json(path, &groups, &[]);
    assert_eq!((&comparison["result"], &comparison["design"]), (&"worse".into(), &"paired".into()));
    // The other way round it is better.
    on[0] = "--a".into();
    off[0] = "--b".into();
    let output = compare(path, &[on, off].concat(), &["--fail-if-worse"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("better"), "{}", stdout(&output));
}

/// Records of one second, made for what they look like, not for what they measure.
fn records(folder: &Path, names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| {
            let args = ["prove", "--for", "1s", "--load", "idle", "--no-trace", "-o", name];
            let output = run(folder, &[&args[..], &["--period", "500us"]].concat());
            assert!([0, 2, 3].contains(&code(&output)), "{}", stderr(&output));
            format!("{name}.rtproof")
        })
        .collect()
}

#[test]
fn bad_input_is_reported_with_its_place() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("empty.log"), "").expect("a file");
    fs::write(path.join("words.log"), "these are words\n").expect("a file");
    fs::write(path.join("bytes.bin"), [0_u8, 159, 146, 150, 255]).expect("a file");
    fs::write(path.join("torn.rtproof"), b"SQLite format 3\0 and no more").expect("a file");
    fs::create_dir(path.join("folder")).expect("a folder");
    for (file, says) in [
        ("nowhere.log", "nowhere.log"),
        ("empty.log", "empty"),
        ("words.log", "words.log"),
        ("bytes.bin", "bytes.bin"),
        ("torn.rtproof", "torn.rtproof"),
        ("folder", "is a directory"),
    ] {
        let output = run(path, &["compare", file, "words.log"]);
        expect_code(&output, FAILED);
        assert!(stderr(&output).contains(says), "{file}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{file}");
    }
    for (args, says) in [
        (&["compare", "words.log"][..], "two runs or more"),
        (&["compare"], "required"),
        (&["compare", "--a", "x"], "--b"),
        (&["compare", "a", "b", "--margin", "x"], "percentage"),
        (&["compare", "words.log", "empty.log", "--format", "nonsense"], "nonsense"),
        (&["compare", "--a", "x", "--b", "y", "--names", "one"], "two names"),
    ] {
        let output = run(path, args);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_machine_is_ranked_among_those_of_a_folder() {
    let folder = folder();
    let path = folder.path();
    for name in ["machines", "few", "machines/old"] {
        fs::create_dir(path.join(name)).expect("a folder");
    }
    for minute in 20..26 {
        result(&path.join("machines"), "m", minute, minute - 19);
    }
    result(&path.join("few"), "m", 30, 1);
    fs::write(path.join("machines/notes.txt"), "bought in March\n").expect("a file");
    let files = [result(path, "a", 0, 1), result(path, "b", 1, 2)];
    let comparison = json(path, &files, &["--reference", "machines"]);
    // 60 µs with 80, 141 ... 385 µs; 121 µs has one below.
    for (run, lower) in [(0, 0), (1, 1)] {
        let rank = &comparison["reference"][run]["all"][1];
        assert_eq!((&rank["statistic"], &rank["machines"]), (&"p99.9".into(), &6.into()));
        assert_eq!((&rank["lower"], &rank["higher"]), (&lower.into(), &(6 - lower).into()));
    }
    let left_out = comparison["reference"][0]["left_out"].to_string();
    for part in ["machines/notes.txt", "machines/old", "it is a folder"] {
        assert!(left_out.contains(part), "{part}: {left_out}");
    }
    let more = ["--reference", "machines", "--html", "ranked.html", "--align", "phase"];
    let output = compare(path, &files, &more);
    expect_code(&output, 0);
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "a0 beside 6 machines of reference: p50 20 µs",
        "p99.9 60 µs: 0 lower, 0 the same, 6 higher",
        "Board and CPU of a0 are not known.",
        "Not recorded, so not checked to be like: priority (6 of 6), loads (6 of 6)",
        "machines/notes.txt is not used",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(path.join("ranked.html")).expect("a page");
    assert!(page.contains("id=\"reference\"") && page.contains("None of these files holds times"));
    // One machine is no scale, and a folder that is not there is no empty one.
    let few = json(path, &files, &["--reference", "few"]);
    assert_eq!(few["reference"][0]["all"][1]["lower"], Value::Null);
    assert!(
        few["reference"][0]["lines"][0].as_str().is_some_and(|t| t.contains("too few to rank"))
    );
    let output = compare(path, &files, &["--reference", "nowhere"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("nowhere"), "{}", stderr(&output));
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn live_records_alone_and_in_groups() {
        let _alone = alone();
        let folder = folder();
        let path = folder.path();
        let files = records(path, &["a1", "b1", "b2", "a2", "a3", "b3"]);
        let comparison = json(path, &files[..2], &[]);
        assert_eq!(
            (&comparison["design"], &comparison["view"]),
            (&"single".into(), &"deadline".into())
        );
        assert_eq!(comparison["result"], "cannot_decide");
        let lines = comparison["table"].as_array().expect("lines");
        let p999 = lines.iter().find(|line| line["statistic"] == "p99.9").expect("p99.9");
        assert!(p999["cells"][0]["n"].as_u64().is_some_and(|n| n > 1000), "{p999}");

        let group = ["--a", "a1.rtproof", "a2.rtproof", "a3.rtproof", "--b", "b1.rtproof"];
        let group = [&group[..], &["b2.rtproof", "b3.rtproof", "--html", "groups.html"]].concat();
        let output = compare(path, &[], &group);
        expect_code(&output, 0);
        let text = stdout(&output);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("Cannot decide between a and b: 3 pairs, and fewer than 6"),
            "{text}"
        );
        assert!(text.contains("95 % interval"), "{text}");

        // The same run twice, and the page in the place of a record.
        let twice = compare(path, &[files[0].clone(), files[0].clone()], &[]);
        expect_code(&twice, USAGE);
        assert!(stderr(&twice).contains("given twice"), "{}", stderr(&twice));
        let over = compare(path, &files[..2], &["--html", "a1.rtproof"]);
        expect_code(&over, USAGE);
        assert!(fs::read(path.join("a1.rtproof")).expect("a record").starts_with(b"SQLite"));

        // Another period is another measurement.
        let other = ["prove", "--for", "1s", "--load", "idle", "--no-trace", "--period", "1ms"];
        run(path, &[&other[..], &["-o", "slow"]].concat());
        let pair = [files[0].clone(), "slow.rtproof".into()];
        let refused = compare(path, &pair, &[]);
        expect_code(&refused, USAGE);
        assert!(stderr(&refused).contains("different periods"), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("--force"));
        let forced = json(path, &pair, &["--force"]);
        assert_eq!(forced["mismatches"][0]["what"], "period");
        // Also where the answer alone is printed.
        let why = forced["answer"]["why"].as_str().expect("why");
        assert!(why.starts_with("compared by force, not alike: "), "{why}");

        let Some(mut browser) = Browser::start() else { return };
        let mut page = browser.open_file(&path.join("groups.html"), DESKTOP);
        page.heard().assert_clean();
        let pictures = "[...document.querySelectorAll('svg.chart')].map(c => c.id)";
        let pictures = page.evaluate(pictures);
        for id in ["chart-overlay", "chart-later", "chart-shift-1", "chart-runs"] {
            assert!(
                pictures.as_array().is_some_and(|all| all.contains(&id.into())),
                "{id} {pictures}"
            );
        }
        let broken = page.evaluate(
            "[...document.querySelectorAll('svg')].map(svg => svg.outerHTML).join('')
            .match(/NaN|Infinity|undefined/)",
        );
        assert_eq!(broken, Value::Null);
        let inside = "JSON.parse(document.querySelector('#rtproof-compare').text).schema";
        assert_eq!(page.evaluate(inside), "rtproof/compare/3");
        page.print_to_pdf(&path.join("compare.pdf"));
        for view in [PHONE, View { dark: true, ..DESKTOP }, View { dark: true, ..PHONE }] {
            page.show(view);
            let wide = page.evaluate("document.documentElement.scrollWidth - innerWidth");
            assert!(
                wide.as_f64().is_some_and(|wide| wide <= 0.0),
                "{view:?} scrolls sideways: {wide}"
            );
        }
        page.heard().assert_clean();
    }
}
