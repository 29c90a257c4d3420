//! What the report promises, on every kind of run: whole, without invalid numbers, without a way
//! out of its own page, the same bytes each time, and small.

use rtproof_record::{
    Class, Run,
    run::{Load, RunEnd},
};
use rtproof_stats::{Histogram, Layout};

use super::sample::{self, Shape};
use super::{Extra, render};

const HOSTILE: &str = "<script>alert(1)</script>'\"&</script><!--";

fn html(run: &Run) -> String {
    let page = render(run, &sample::report(run), &Extra::default());
    check(&page);
    page
}

/// Holds for every page.
fn check(page: &str) {
    let markup = page.split("<script").next().unwrap_or_default();
    for word in ["NaN", "inf\"", "inf ", "-inf", "undefined"] {
        assert!(!markup.contains(word), "{word} in {}", around(markup, word));
    }
    for attribute in ["src=", "href=\"http", "url(", "@import", "javascript:", " onload="] {
        assert!(!page.contains(attribute), "{attribute} in {}", around(page, attribute));
    }
    for id in ["chart-histogram", "chart-percentile", "chart-heat", "chart-strip"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    balanced(markup);
}

fn around(text: &str, word: &str) -> String {
    let at = text.find(word).unwrap_or(0);
    text[at..].chars().take(120).collect()
}

/// Every element that opens also closes, in order.
fn balanced(markup: &str) {
    let mut open = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        let end = tag.find('>').expect("a tag ends");
        let name: String =
            tag.chars().take_while(|c| c.is_ascii_alphanumeric() || "/!".contains(*c)).collect();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{}", &tag[..end]),
            None if ["!DOCTYPE", "meta", "link", "br"].contains(&name.as_str()) => {}
            None => open.push(name),
        }
        rest = &tag[end + 1..];
    }
    assert_eq!(open, ["html", "body"], "the scripts come last");
}

fn count(page: &str, text: &str) -> usize {
    page.matches(text).count()
}

#[test]
fn a_run_of_two_cpus_and_a_minute_is_whole_and_small() {
    let run = sample::run(&Shape::default());
    let page = html(&run);
    assert!(page.len() < 500_000, "{} bytes", page.len());
    assert!(page.contains("REFUSED"));
    let histogram = &page[page.find("id=\"chart-histogram\"").unwrap()..];
    let histogram = &histogram[..histogram.find("</svg>").unwrap()];
    assert!(histogram.contains("data-series=\"2\""));
    assert_eq!(count(histogram, "class=\"series "), 2);
    assert!(
        histogram.contains("class=\"line dashed\""),
        "missed wake-ups show in the deadline view"
    );
    for group in ["Now", "At the next boot", "In the firmware", "Could not be told"] {
        assert!(page.contains(group), "{group}");
    }
    assert_eq!(page, html(&sample::run(&Shape::default())), "the same bytes each time");
}

#[test]
fn sizes_are_bounded() {
    let minute = Shape { cpus: 64, per_second: 50, ..Shape::default() };
    let page = html(&sample::lengthened(sample::run(&minute), 60));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let many = Shape { cpus: 300, seconds: 3, per_second: 20, ..Shape::default() };
    assert!(html(&sample::run(&many)).contains("id=\"chart-strip\" data-series=\"60\""));
}

#[test]
fn hostile_names_stay_text() {
    let run = sample::run(&Shape { name: HOSTILE.into(), seconds: 3, ..Shape::default() });
    let extra = Extra { banner: Some(format!("Altered: {HOSTILE}")) };
    let page = render(&run, &sample::report(&run), &extra);
    assert!(!page.contains("<script>alert"));
    assert_eq!((count(&page, "<script"), count(&page, "</script>")), (2, 2));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    let json = &page[page.find("type=\"application/json\">").unwrap() + 24..];
    let json = &json[..json.find("</script>").unwrap()];
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(value["machine"]["hostname"], HOSTILE);
    assert_eq!(value["schema"], rtproof_judge::report::SCHEMA);
}

#[test]
fn banners_and_torn_records_are_said_first() {
    let mut run = sample::run(&Shape { seconds: 5, ..Shape::default() });
    run.facts_end = None;
    run.meta.ended = None;
    run.threads.iter_mut().for_each(|thread| thread.end = None);
    let extra = Extra { banner: Some("This record is torn.".into()) };
    let page = render(&run, &sample::report(&run), &extra);
    check(&page);
    assert!(page.find("This record is torn.").unwrap() < page.find("<h1").unwrap());
    assert!(page.contains("torn: the schedule is not known"));
}

#[test]
fn nothing_measured_is_said_and_drawn_as_nothing() {
    let mut run = sample::run(&Shape { seconds: 1, per_second: 0, ..Shape::default() });
    assert!(html(&run).contains("No wake-up was measured."));
    run.threads.clear();
    run.host.clear();
    run.loads.clear();
    run.options.phases.clear();
    html(&run);
}

#[test]
fn degenerate_runs_are_drawn() {
    let shapes = [
        Shape { cpus: 1, seconds: 1, per_second: 1, ..Shape::default() },
        Shape { usual_ns: 0, spikes: false, ..Shape::default() },
        Shape { budget_ns: None, cpus: 1, ..Shape::default() },
        Shape { budget_ns: Some(1), ..Shape::default() },
        Shape { budget_ns: Some(u64::MAX), ..Shape::default() },
        Shape { cpus: 16, seconds: 30, ..Shape::default() },
        Shape { usual_ns: 4_000_000_000_000, seconds: 3, per_second: 5, ..Shape::default() },
        Shape { seconds: 1, per_second: 200_000, usual_ns: 1_000, ..Shape::default() },
    ];
    for shape in shapes {
        html(&sample::run(&shape));
    }
}

#[test]
fn all_values_equal_are_drawn() {
    let mut run = sample::run(&Shape { cpus: 1, seconds: 1, per_second: 1, ..Shape::default() });
    for value_ns in [0, 1, 777, u64::MAX] {
        let mut wake = Histogram::new(Layout::FINE);
        wake.record_n(value_ns, 1_000_000);
        run.threads[0].wake = wake;
        html(&run);
    }
}

#[test]
fn answers_have_their_own_word_and_class() {
    let quiet = Shape { spikes: false, seconds: 60, ..Shape::default() };
    let mut run = sample::run(&quiet);
    run.options.requirement.rate_per_1000h = 1_000_000;
    // The loads of the sample fail; here all that was planned ran.
    let made = run.loads[0].clone();
    let planned = run.options.phases.iter().flat_map(|phase| &phase.loads);
    run.loads = planned.map(|name| Load { name: name.clone(), ..made.clone() }).collect();
    let reasons = sample::report(&run).verdict.reasons;
    assert!(html(&run).contains("data-answer=\"accepted\""), "{reasons:?}");
    run.meta.ended = Some(RunEnd::Interrupted { signal: "SIGINT".into() });
    assert!(html(&run).contains("data-answer=\"not-proven\""));
    run.options.requirement.class = Class::Soft;
    assert!(html(&run).contains("data-answer=\"not-judged\""));
}

/// Writes pages to look at: `RTPROOF_PAGES=/tmp/pages cargo test -p rtproof pages`.
#[test]
#[expect(clippy::disallowed_methods, reason = "pages for a reader of this test")]
fn pages() {
    let Some(folder) = std::env::var_os("RTPROOF_PAGES").map(std::path::PathBuf::from) else {
        return;
    };
    let quiet = Shape { spikes: false, ..Shape::default() };
    let pages = [
        ("refused", Shape::default()),
        ("accepted", quiet.clone()),
        ("not-judged", Shape { budget_ns: None, ..Shape::default() }),
        ("sixteen", Shape { cpus: 16, seconds: 600, ..Shape::default() }),
        ("many", Shape { cpus: 64, per_second: 200, ..Shape::default() }),
        ("one", Shape { cpus: 1, seconds: 1, per_second: 1, ..Shape::default() }),
        ("nothing", Shape { seconds: 1, per_second: 0, ..Shape::default() }),
        ("hostile", Shape { name: HOSTILE.into(), seconds: 5, ..quiet }),
    ];
    for (name, shape) in pages {
        let mut run = sample::run(&shape);
        let mut extra = Extra::default();
        if name == "many" {
            run = sample::lengthened(run, 60);
        }
        if name == "accepted" {
            run.options.requirement.rate_per_1000h = 1_000_000;
        }
        if name == "hostile" {
            run.meta.ended = None;
            run.facts_end = None;
            extra.banner =
                Some("This record was altered after it was sealed: its digest differs.".into());
        }
        let page = render(&run, &sample::report(&run), &extra);
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
    }
}
