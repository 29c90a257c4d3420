//! What the text promises at every width: no line is longer, everything is named, sums are equal,
//! the same text each time.

use std::io;

use rtproof_judge::causes::{Recorder, Spike, Spikes};

use super::grouped;
use crate::{
    spike::sample,
    text::sheet::{Glyphs, Page},
};

const WIDTHS: [usize; 4] = [60, 72, 80, 100];

fn page(columns: usize) -> Page {
    Page { columns, glyphs: Glyphs::BLOCKS }
}

fn text(show: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    show(&mut out).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
}

fn of_run(page: Page, spikes: &Spikes) -> String {
    let window = spikes.worst.first().and_then(|worst| sample::window(worst.number));
    text(|out| page.spikes(out, spikes, window.as_ref()))
}

fn of_spike(page: Page, spike: &Spike) -> String {
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
fn a_run_is_told_at_every_width() {
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
fn a_spike_is_told_at_every_width_and_sums_up() {
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
fn incompleteness_stacks_and_wakers_are_told() {
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
fn a_sum_that_is_not_the_latency_is_told() {
    let mut spike = sample::stall();
    spike.explanation.shares[0].ns += 1;
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
    let ascii = Page { columns: 80, glyphs: Glyphs::ASCII };
    for line in of_spike(ascii, &sample::stall()).lines().filter(|line| line.starts_with("  why")) {
        assert!(line.is_ascii(), "{line}");
    }
}

#[test]
fn degenerate_and_hostile_spikes_are_told() {
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
    spikes.recorder = Recorder { off: Some("no tracefs".into()), ..Recorder::default() };
    let text = of_run(page(60), &spikes);
    assert!(
        text.contains("none later than 50 µs") && text.contains("nothing recorded: no tracefs")
    );
}

/// Writes the texts to look at: `RTPROOF_PAGES=/tmp/pages cargo test -p rtproof spikes`.
#[test]
#[expect(clippy::disallowed_methods, reason = "texts for a reader of this test")]
fn pages() {
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
