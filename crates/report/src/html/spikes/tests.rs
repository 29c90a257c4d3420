//! What the section promises: everything said, ids unique, sums equal to the latencies, hostile
//! names stay text.

use std::collections::BTreeSet;

use super::{super::sample as run_sample, *};
use crate::spike::sample;

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
fn everything_is_said() {
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
fn a_sum_that_is_not_the_latency_is_said() {
    let mut spikes = sample::spikes();
    spikes.worst[0].explanation.shares[0].ns -= 1;
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
    let bad = findings.iter().find(|finding| finding.stands()).unwrap();
    let list = [bad.check.clone(), "not-on-this-page".into()];
    let text = causes::checks(&list, &findings).into_string();
    assert!(text.contains(&format!("href=\"#check-{}\"", bad.check)));
    assert_eq!(text.matches("href=").count(), 1);
}

#[test]
fn hostile_names_stay_text() {
    let page = shown(&sample::hostile());
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn nothing_seen_and_nothing_recorded_are_said() {
    let mut spikes = sample::spikes();
    (spikes.seen, spikes.explained, spikes.unexamined, spikes.sum_ns) = (0, 0, 0, 0);
    spikes.worst.clear();
    spikes.causes.clear();
    spikes.structure.clear();
    spikes.recorder =
        Recorder { off: Some("tracefs is not readable".into()), ..Recorder::default() };
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
                    style { (maud::PreEscaped(parts::STYLE)) }
                }
                body { main { (maud::PreEscaped(shown(&spikes).replace("<details class=\"spike\"", "<details open class=\"spike\""))) } }
            }
        };
        std::fs::write(folder.join(format!("{name}.html")), page.into_string()).unwrap();
    }
}
