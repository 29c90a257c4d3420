//! What the section promises: everything said, ids unique, sums equal to the latencies, hostile
//! names stay text.

use std::{collections::BTreeSet, io};

use rtproof_judge::causes::{ExplainedSpike, RecorderSummary, Spikes};
use rtproof_judge::units::grouped;

use super::*;
use crate::html;
use crate::page::sample as run_sample;
use crate::spike::sample;
use crate::text::{Glyphs, TextPage};

fn shown(spikes: &Spikes) -> String {
    let windows: Vec<_> = (0..4).map(sample::window).collect();
    let window = |number: u32| windows.get(number as usize)?.as_ref();
    let findings = run_sample::report(&run_sample::run(&run_sample::Shape {
        seconds: 1,
        ..run_sample::Shape::default()
    }))
    .findings;
    section(spikes, &findings, &pictures(spikes, &findings, &window)).into_string()
}

fn plain(text: &str) -> String {
    text.replace('\u{202f}', " ")
}

#[test]
fn everything_is_shown() {
    let page = plain(&shown(&sample::spikes()));
    for text in [
        "431 wake-ups were later than 50 µs",
        "428 of them are explained, 3 were not examined",
        "1 explanation is incomplete",
        "multipathd [RR 99]",
        "multipathd.service",
        "chrt --rr -p 10 812",
        "follow a period of 100.004 ms",
        "29 of 31",
        "+1.18 µs, measured in 8 pairs",
        "17 events were lost.",
        "NMIs cannot be told from stalls",
        "ext4_finish_bio+0xc2/0x290",
        "Its events were not kept",
        "Woken by irq/38-can0 [FIFO 50], which was woken by IRQ 38 can0.",
        "= 3 449 602",
        "= 60 000",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("the latency, exactly").count(), 4);
    assert_eq!(page.matches("<details class=\"spike\"").count(), 4);
    assert_eq!(page, plain(&shown(&sample::spikes())), "the same bytes each time");
}

#[test]
fn a_sum_that_differs_from_the_latency_is_reported() {
    let mut spikes = sample::spikes();
    sample::edit_top(&mut spikes.worst[0], |share| share.ns -= 1);
    assert_eq!(shown(&spikes).matches("not the latency").count(), 1);
}

#[test]
fn ids_are_unique_and_links_lead_somewhere() {
    let page = shown(&sample::spikes());
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    assert!(ids.contains(&"spike-1") && ids.contains(&"chart-spike-1"));
}

#[test]
fn checks_of_the_page_are_linked() {
    let run = run_sample::run(&run_sample::Shape { seconds: 1, ..run_sample::Shape::default() });
    let findings = run_sample::report(&run).findings;
    let bad = findings.iter().find(|finding| finding.is_open()).unwrap();
    let list = [bad.check.clone(), "not-on-this-page".into()];
    let text = checks(&list, &findings).into_string();
    assert!(text.contains(&format!("href=\"#check-{}\"", bad.check)));
    assert_eq!(text.matches("href=").count(), 1);
}

#[test]
fn hostile_names_stay_text() {
    let page = shown(&sample::hostile());
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn no_spikes_and_no_recording_are_reported() {
    let mut spikes = sample::spikes();
    (spikes.seen, spikes.explained, spikes.unexamined, spikes.sum_ns) = (0, 0, 0, 0);
    spikes.worst.clear();
    spikes.causes.clear();
    spikes.structure.clear();
    spikes.recorder = RecorderSummary {
        off: Some("tracefs is not readable".into()),
        ..RecorderSummary::default()
    };
    let page = shown(&spikes);
    assert!(page.contains("No wake-up was later than 50 µs"));
    assert!(page.contains("No kernel events were recorded: tracefs is not readable."));
    spikes.seen = 1;
    assert!(shown(&spikes).contains("1 wake-up was later"));
    spikes.causes = vec![sample::spikes().causes[0].clone(); 53];
    assert!(shown(&spikes).contains("The record holds 3 more, each"));
    spikes.worst = vec![sample::stall(); SHOWN_MAX + 2];
    assert!(shown(&spikes).contains("The record holds 2 more."));
}

/// Writes the section to look at: `RTPROOF_PAGES=/tmp/pages cargo test -p rtproof spikes`.
#[test]
#[expect(clippy::disallowed_methods, reason = "a page for a reader of this test")]
fn pages() {
    let Some(folder) = std::env::var_os("RTPROOF_PAGES").map(std::path::PathBuf::from) else {
        return;
    };
    for (name, spikes) in [("spikes", sample::spikes()), ("spikes-hostile", sample::hostile())] {
        let page = html! {
            (maud::DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    style { (maud::PreEscaped(html::STYLE)) }
                }
                body { main { (maud::PreEscaped(shown(&spikes).replace("<details class=\"spike\"", "<details open class=\"spike\""))) } }
            }
        };
        std::fs::write(folder.join(format!("{name}.html")), page.into_string()).unwrap();
    }
}

// What the text promises at every width: no line is longer, everything is named, sums are equal,
// the same text each time.

const WIDTHS: [usize; 4] = [60, 72, 80, 100];

fn page(columns: usize) -> TextPage {
    TextPage { columns, glyphs: Glyphs::BLOCKS }
}

fn text(show: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    show(&mut out).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
}

fn of_run(page: TextPage, spikes: &Spikes) -> String {
    let window = spikes.worst.first().and_then(|worst| sample::window(worst.number));
    text(|out| page.spikes(out, spikes, window.as_ref()))
}

fn of_spike(page: TextPage, spike: &ExplainedSpike) -> String {
    let window = sample::window(spike.number);
    text(|out| page.explanation(out, &spike.explanation, window.as_ref()))
}

/// No line is wider than the page, but for a word that is.
fn check(text: &str, columns: usize) {
    for line in text.lines() {
        let is_word = !line.trim().contains(' ');
        assert!(is_word || line.chars().count() <= columns, "{columns}: {line}");
    }
}

#[test]
fn a_run_fits_every_width() {
    for columns in WIDTHS {
        let text = of_run(page(columns), &sample::spikes());
        check(&text, columns);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "431 later than 50 µs",
            "428 explained, 3 not examined",
            "multipathd",
            "multipathd.service",
            "kinds of cause",
            "follow a period of 100.004 ms",
            "echo -1 > /proc/sys/kernel/sched_rt_runtime_us",
            "+1.18 µs at p50",
            "17 events lost",
            ": spike 0",
        ] {
            assert!(flat.contains(part), "{columns}: {part} in\n{text}");
        }
        assert_eq!(text, of_run(page(columns), &sample::spikes()), "the same each time");
    }
}

#[test]
fn a_name_begins_no_line() {
    let mut spikes = sample::spikes();
    for row in &mut spikes.causes {
        row.culprit += "\nVerdict  ACCEPTED";
    }
    for columns in WIDTHS {
        let text = of_run(page(columns), &spikes);
        assert!(text.contains("\\nVerdict"), "{columns}:\n{text}");
        assert!(!text.lines().any(|line| line.starts_with("Verdict")), "{columns}:\n{text}");
    }
}

#[test]
fn a_spike_fits_every_width_and_sums_up() {
    for spike in sample::spikes().worst {
        for columns in WIDTHS {
            let text = of_spike(page(columns), &spike);
            check(&text, columns);
            let late_ns = spike.explanation.wake.latency_ns();
            assert!(text.contains(&format!("= {} ", grouped(late_ns))), "{text}");
            assert!(text.contains("the latency, exactly"));
            let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  why")).collect();
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].chars().count(), columns, "the blocks fill the row: {text}");
            for share in 0..spike.explanation.shares.len() {
                let letter = char::from(b'A' + u8::try_from(share).unwrap());
                assert!(text.contains(&format!("  {letter} ")), "{letter} in\n{text}");
            }
        }
    }
}

#[test]
fn incompleteness_stacks_and_wakers_are_shown() {
    let text = of_spike(page(100), &sample::incomplete());
    for part in [
        "incomplete: 17 events of CPU 1 were lost within it",
        "or: a stall of hardware or hypervisor",
        "which was woken by IRQ 38 can0",
        "××",
        "kworker/1:0",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let text = of_spike(page(100), &sample::short());
    assert!(text.contains("  ext4_finish_bio+0xc2/0x290\n"), "{text}");
    assert!(text.contains("its events were not kept"));
}

#[test]
fn a_sum_that_differs_from_the_latency_is_reported_as_text() {
    let mut spike = sample::stall();
    sample::edit_top(&mut spike, |share| share.ns += 1);
    assert!(of_spike(page(80), &spike).contains("not the latency"));
}

#[test]
fn of_very_many_shares_the_small_ones_are_one_line() {
    let mut spike = sample::stall();
    let small = spike.explanation.shares[1].clone();
    spike.explanation.shares.extend(std::iter::repeat_n(small, 100));
    let text = of_spike(page(80), &spike);
    assert!(text.contains(" 60 more\n"), "{text}");
    check(&text, 80);
}

#[test]
fn plain_terminals_get_plain_characters() {
    let ascii = TextPage { columns: 80, glyphs: Glyphs::ASCII };
    for line in of_spike(ascii, &sample::stall()).lines().filter(|line| line.starts_with("  why")) {
        assert!(line.is_ascii(), "{line}");
    }
}

#[test]
fn degenerate_and_hostile_spikes_are_shown() {
    for columns in WIDTHS {
        let spikes = sample::hostile();
        of_run(page(columns), &spikes);
        spikes.worst.iter().for_each(|spike| drop(of_spike(page(columns), spike)));
    }
    let mut spike = sample::stall();
    spike.explanation.shares.clear();
    check(&of_spike(page(60), &spike), 60);
    spike = sample::stall();
    spike.explanation.wake.ran_ns = spike.explanation.wake.due_ns;
    of_spike(page(60), &spike);
    let mut spikes = sample::spikes();
    (spikes.seen, spikes.worst, spikes.causes) = (0, Vec::new(), Vec::new());
    spikes.recorder =
        RecorderSummary { off: Some("no tracefs".into()), ..RecorderSummary::default() };
    let text = of_run(page(60), &spikes);
    assert!(
        text.contains("none seen later than 50 µs")
            && text.contains("nothing recorded: no tracefs")
    );
}

/// Writes the texts to look at: `RTPROOF_PAGES=/tmp/pages cargo test -p rtproof spikes`.
#[test]
#[expect(clippy::disallowed_methods, reason = "texts for a reader of this test")]
fn pages_tests() {
    let Some(folder) = std::env::var_os("RTPROOF_PAGES").map(std::path::PathBuf::from) else {
        return;
    };
    for columns in WIDTHS {
        let mut out = Vec::new();
        let spikes = sample::spikes();
        let window = sample::window(0);
        page(columns).spikes(&mut out, &spikes, window.as_ref()).unwrap();
        for spike in &spikes.worst {
            out.push(b'\n');
            let window = sample::window(spike.number);
            page(columns).explanation(&mut out, &spike.explanation, window.as_ref()).unwrap();
        }
        std::fs::write(folder.join(format!("spikes-{columns}.ansi")), out).unwrap();
    }
}
