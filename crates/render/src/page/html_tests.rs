//! What the report promises, on every kind of run: whole, without invalid numbers, without a way
//! out of its own page, the same bytes each time, and small.

use rtproof_record::{
    BudgetClass, Run,
    run::{RecordedLoad, RunEnd},
};
use rtproof_stats::{Histogram, Layout};

use super::sample::Shape;
use super::{Extra, render, sample};

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
            None if ["!DOCTYPE", "meta", "link", "br", "input"].contains(&name.as_str()) => {}
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
    assert!(page.contains("NOT PROVEN"), "one late group in a minute: too little to refuse");
    let histogram = &page[page.find("id=\"chart-histogram\"").unwrap()..];
    let histogram = &histogram[..histogram.find("</svg>").unwrap()];
    assert!(histogram.contains("data-series=\"2\""));
    let levels = &histogram[histogram.find("class=\"levels\"").unwrap()..];
    for name in ["μ ", "p5 ", "p50 ", "p95 ", "p99 ", "p99.9 "] {
        assert!(levels.contains(&format!(">{name}")), "{name}: {levels}");
    }
    assert!(page.contains("id=\"levels\" type=\"checkbox\""));
    assert_eq!(count(histogram, "class=\"series "), 2);
    assert!(
        histogram.contains("class=\"line dashed\""),
        "missed wake-ups show in the deadline view"
    );
    for group in ["Now", "At the next boot", "In the firmware", "Unknown"] {
        assert!(page.contains(group), "{group}");
    }
    assert_eq!(page, html(&sample::run(&Shape::default())), "the same bytes each time");
}

#[test]
fn sizes_are_bounded() {
    if rtproof_judge::testing::is_full() {
        let minute = Shape { cpus: 64, per_second: 50, ..Shape::default() };
        let page = html(&sample::lengthened(sample::run(&minute), 60));
        assert!(page.len() < 1_200_000, "{} bytes", page.len());
    }
    let many = Shape { cpus: 300, seconds: 3, per_second: 20, ..Shape::default() };
    assert!(html(&sample::run(&many)).contains("id=\"chart-strip\" data-series=\"60\""));
}

/// As much as a record of a day of 64 CPUs can hold of spikes.
fn crowded() -> (Run, rtproof_judge::Report) {
    use rtproof_record::spikes::{MainCause, RecordedSpikes, SPIKES_MAX, Spike};

    let shape = Shape { cpus: 64, per_second: 50, ..Shape::default() };
    let mut run = sample::lengthened(sample::run(&shape), 60);
    let mut report = sample::report(&run);
    let spike = |i: u64| Spike {
        thread: (i % 64) as u32,
        due_ns: i * 36_000_000,
        latency_ns: 60_000 + i * 7_919 % 9_000_000,
        why: (!i.is_multiple_of(7)).then(|| MainCause {
            cause: ["irq", "softirq", "preempted", "stall", "irqs-off", "new"][i as usize % 6]
                .into(),
            culprit: HOSTILE.into(),
            complete: true,
        }),
    };
    let mut found = crate::spike::sample::spikes();
    let worst = found.worst.clone();
    found.worst = worst.into_iter().cycle().take(40).collect();
    for (number, spike) in (1..).zip(&mut found.worst) {
        spike.number = number;
    }
    report.spikes = Some(found);
    let list = (0..SPIKES_MAX as u64).map(spike).collect();
    run.spikes = Some(RecordedSpikes {
        summary: Default::default(),
        causes: Vec::new(),
        list,
        kept: Vec::new(),
    });
    (run, report)
}

#[test]
fn a_day_of_sixty_four_cpus_with_all_spikes_is_below_its_limit() {
    let (run, report) = crowded();
    let page = render(&run, &report, &Extra::default());
    check(&page);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert_eq!(count(&page, "<details class=\"spike\""), 12);
    assert!(!page.contains("<script>alert"));
    let dots = &page[page.find("id=\"chart-spikes\"").expect("dots")..];
    assert!(dots.contains("&lt;script&gt;alert(1)"), "names stand in the titles of dots");
    assert!(count(dots, "class=\"dot ") >= 400);
}

#[test]
fn hostile_names_stay_text() {
    let run = sample::run(&Shape { name: HOSTILE.into(), seconds: 3, ..Shape::default() });
    let extra = Extra { banner: Some(format!("Altered: {HOSTILE}")), next: Some(HOSTILE.into()) };
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
fn banners_and_torn_records_come_first() {
    let mut run = sample::run(&Shape { seconds: 5, ..Shape::default() });
    run.facts_end = None;
    run.meta.ended = None;
    run.threads.iter_mut().for_each(|thread| thread.end = None);
    let extra = Extra { banner: Some("This record is torn.".into()), next: None };
    let page = render(&run, &sample::report(&run), &extra);
    check(&page);
    assert!(page.find("This record is torn.").unwrap() < page.find("<h1").unwrap());
    assert!(page.contains("torn: the schedule is not known"));
}

#[test]
fn an_empty_measurement_is_reported_and_drawn_empty() {
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
    run.options.requirement.rate_per_1000h = 300_000;
    // The loads of the sample fail; here all that was planned ran.
    let made = run.loads[0].clone();
    let planned = run.options.phases.iter().flat_map(|phase| &phase.loads);
    run.loads = planned.map(|name| RecordedLoad { name: name.clone(), ..made.clone() }).collect();
    let reasons = sample::report(&run).verdict.reasons;
    assert!(html(&run).contains("data-answer=\"accepted\""), "{reasons:?}");
    run.meta.ended = Some(RunEnd::Interrupted { signal: "SIGINT".into() });
    assert!(html(&run).contains("data-answer=\"not-proven\""));
    run.options.requirement.class = BudgetClass::Soft;
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
        ("crowded", Shape::default()),
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
            run.options.requirement.rate_per_1000h = 300_000;
        }
        if name == "hostile" {
            run.meta.ended = None;
            run.facts_end = None;
            extra.banner =
                Some("This record was altered after it was sealed: its digest differs.".into());
        }
        let mut report = sample::report(&run);
        if name == "crowded" {
            (run, report) = crowded();
        }
        let page = render(&run, &report, &extra);
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
    }
}

/// A run of a minute with something of every kind beside its latencies.
fn eventful() -> (Run, rtproof_judge::Report) {
    use rtproof_judge::causes::{Structure, StructureMoment};
    use rtproof_record::run::{Mark, MarkKind};
    const SECOND: u64 = 1_000_000_000;

    let mut run = sample::run(&Shape::default());
    let mark = |at_s: u64, kind, before: &str, after: &str| Mark {
        thread: 1,
        since_ns: (at_s - 1) * SECOND,
        at_ns: at_s * SECOND,
        kind,
        before: before.into(),
        after: after.into(),
    };
    run.surroundings.marks = vec![
        mark(14, MarkKind::Policy, "SCHED_OTHER", "SCHED_FIFO 1"),
        mark(15, MarkKind::Affinity, "CPU 3", "CPUs 2-3"),
        mark(48, MarkKind::Policy, "SCHED_FIFO 1", "SCHED_FIFO 98"),
    ];
    let mut report = sample::report(&run);
    let found = |kind: &str, text: &str, cpu, moments: Vec<(u64, &str)>| Structure {
        kind: kind.into(),
        text: text.into(),
        period_ns: (kind == "period").then_some(1_000_012_345),
        count: moments.len() as u64,
        of: 40,
        p: 1e-6,
        cpu,
        moments: moments
            .into_iter()
            .map(|(at_ns, text)| StructureMoment { at_ns, text: text.into() })
            .collect(),
    };
    let level = vec![(20 * SECOND, "3.1 µs → 5.9 µs"), (41 * SECOND, "5.9 µs → 7.4 µs")];
    let crowded: Vec<_> =
        [21, 22, 23, 24, 50, 51, 59].map(|s| (s * SECOND, "1.2 ms → 1.3 ms")).into();
    let every = (1..60).map(|s| (s * SECOND + 3_000_000, "")).collect();
    let mut spikes = crate::spike::sample::spikes();
    spikes.structure = vec![
        found("level", "the median latency of CPU 2 changed 2 times (p = 1e-6)", Some(2), level),
        found("level", "the median latency of CPU 3 changed 7 times (p = 1e-6)", Some(3), crowded),
        found(
            "period",
            "59 of 61 spikes by multipathd [RR 99] follow a period of 1.000 s",
            None,
            every,
        ),
        found(
            "cpus",
            "2 of 8 spikes came at once on all measured CPUs",
            None,
            vec![(33 * SECOND, "")],
        ),
        found(
            "frequency",
            "2 of 2 changes came with the frequency",
            Some(2),
            vec![(20 * SECOND, "")],
        ),
        found("phase", "5 of 6 spikes came in the phase cpu", None, Vec::new()),
    ];
    report.spikes = Some(spikes);
    (run, report)
}

#[test]
fn outside_changes_are_marked_in_the_pictures_over_time() {
    let (run, report) = eventful();
    let page = render(&run, &report, &Extra::default());
    check(&page);
    let picture = |id: &str| {
        let from = page.find(&format!("id=\"{id}\"")).expect(id);
        page[from..from + page[from..].find("</svg>").expect("an end")].to_owned()
    };
    let heat = picture("chart-heat");
    for name in
        ["CPU 3 outside", "CPU 2 level", "CPU 3 level", "every 1 s", "at once", "CPU 2 freq."]
    {
        assert!(heat.contains(&format!(">{name}</text>")), "{name}");
    }
    assert_eq!(count(&heat, "class=\"lane\""), 6, "the phase has a band already");
    assert_eq!(count(&heat, "class=\"tick\""), 3 + 2 + 7 + 59 + 1 + 1);
    // Those with few moments have lines through the plot, with the sentence as their title.
    assert_eq!(count(&heat, "class=\"event\""), 3 + 2 + 7 + 1 + 1);
    assert!(
        heat.contains(
            "<title>20.0 s: 3.1 µs → 5.9 µs. the median latency of CPU 2 changed 2 times"
        )
    );
    assert!(heat.contains("SCHED_OTHER to SCHED_FIFO 1 before 14.0 s"));
    assert_eq!(count(&picture("chart-strip"), "class=\"event\""), 3 + 2 + 7 + 1 + 1);
    assert_eq!(count(&picture("chart-moving"), "class=\"lane\""), 6);
    assert!(page.contains("Marked above the plot: CPU 3 outside (3), CPU 2 level (2)"));
    let plain = html(&sample::run(&Shape::default()));
    assert!(!plain.contains("class=\"lane\"") && !plain.contains("swatch event"));
}

#[test]
fn moments_and_averages_have_their_conventions_beside_them() {
    let page = html(&sample::run(&Shape::default()));
    let section = &page[page.find("id=\"moments\"").expect("a section")..];
    let section = &section[..section.find("</section>").expect("an end")];
    for text in ["skewness g1", "kurtosis g2 + 3", "P² estimate", "CPU 2"] {
        assert!(section.to_lowercase().contains(&text.to_lowercase()), "{text}");
    }
    for id in ["chart-moving", "chart-moving-skewness", "chart-moving-kurtosis"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("all so far (cumulative)") && page.contains("id=\"moving-p99-9\""));
    assert!(page.contains("href=\"#moments\""));
    let mut none = sample::run(&Shape { seconds: 1, ..Shape::default() });
    none.threads.clear();
    assert!(!render(&none, &sample::report(&none), &Extra::default()).contains("id=\"moments\""));
}
