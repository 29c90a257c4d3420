//! What the picture of a spike promises: every name is there and none lies on another, everything
//! lies within, and the same bytes each time.

use rtproof_judge::causes::{ExplainedSpike, Explanation, Share, ShareRow, title};

use super::{SIZE, SMALL, draw, width};
use crate::spike::{self, sample};

/// A text of a picture, as it lies there.
#[derive(Debug)]
struct Shown {
    text: String,
    from: f64,
    to: f64,
    base: f64,
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// All texts of a picture with their extents.
fn texts(svg: &str) -> Vec<Shown> {
    let mut texts = Vec::new();
    let mut small = false;
    for part in svg.split('<').skip(1) {
        let (tag, content) = part.split_once('>').unwrap_or((part, ""));
        if tag.starts_with("g ") {
            let class = attribute(tag, "class").unwrap_or_default();
            small = ["piece", "lost", "moment"].iter().any(|name| class.starts_with(name));
        }
        if !tag.starts_with("text ") {
            continue;
        }
        let size = if small && attribute(tag, "class") != Some("lane") { SMALL } else { SIZE };
        let text = content.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        let number = |name| attribute(tag, name).unwrap().parse::<f64>().unwrap();
        let (x, width) = (number("x"), width(&text, size));
        let (from, to) = match attribute(tag, "text-anchor") {
            Some("end") => (x - width, x),
            Some("middle") => (x - width / 2.0, x + width / 2.0),
            _ => (x, x + width),
        };
        texts.push(Shown { text, from, to, base: number("y") });
    }
    texts
}

fn drawn(spike: &ExplainedSpike) -> String {
    let window = sample::window(spike.number);
    draw(&format!("chart-spike-{}", spike.number), &spike.explanation, window.as_ref())
        .into_string()
}

/// Holds for every picture.
fn check(svg: &str) {
    let texts = texts(svg);
    for (i, a) in texts.iter().enumerate() {
        assert!(a.from >= -1.0 && a.to <= 961.0, "{a:?} stands out");
        for b in &texts[i + 1..] {
            let is_apart = a.to <= b.from + 0.5 || b.to <= a.from + 0.5;
            assert!(is_apart || (a.base - b.base).abs() >= 11.0, "{a:?} lies on {b:?}");
        }
    }
    for word in ["NaN", "inf", "width=\"-", "height=\"-", "url("] {
        assert!(!svg.contains(word), "{word}");
    }
}

#[test]
fn every_cause_is_named_and_no_name_lies_on_another() {
    for spike in [sample::stall(), sample::throttled(), sample::short(), sample::incomplete()] {
        let svg = drawn(&spike);
        check(&svg);
        let all: Vec<String> = texts(&svg).into_iter().map(|shown| shown.text).collect();
        for share in &spike.explanation.shares {
            let (long, short) = (title(&share.cause).to_owned(), spike::short(&share.cause));
            let is_named =
                |text: &String| *text == long || *text == short || text.starts_with(&short);
            assert!(all.iter().any(is_named), "{} in {all:?}", share.cause);
        }
        let late = format!("{} late", spike::us(spike.explanation.wake.latency_ns()));
        assert!(all.contains(&late));
        assert_eq!(svg, drawn(&spike), "the same bytes each time");
        assert!(svg.len() < 40_000, "{} bytes", svg.len());
    }
}

#[test]
fn running_tasks_and_wakers_are_shown() {
    let svg = drawn(&sample::incomplete());
    for text in ["kworker/1:0", "IRQ 38 can0", "17 events", "wakes the late task", "flush_tlb_func"]
    {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.contains("class=\"hatch\""), "what may be something else is hatched");
    assert!(!drawn(&sample::short()).contains("class=\"lanes\""), "no window, no lanes");
}

#[test]
fn many_short_causes_are_named_from_above_and_many_spans_stay_small() {
    let mut spike = sample::stall();
    let explanation = &mut spike.explanation;
    let (due_ns, first) = (explanation.wake.due_ns, explanation.shares[0].clone());
    explanation.shares = (0..20_u32)
        .map(|i| {
            let mut row = ShareRow::clone(&first);
            (row.cause, row.culprit) = (format!("cause_{i}"), format!("a culprit {i} [FIFO 50]"));
            Share::assumed(row)
        })
        .collect();
    explanation.spans = spans(due_ns, explanation.wake.latency_ns(), 20);
    check(&drawn(&spike));
    spike.explanation.spans = spans(due_ns, spike.explanation.wake.latency_ns(), 30_000);
    let svg = drawn(&spike);
    check(&svg);
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
}

fn spans(due_ns: u64, length_ns: u64, count: u32) -> Vec<rtproof_judge::causes::Span> {
    let edge = |i: u32| due_ns + length_ns * u64::from(i) / u64::from(count);
    (0..count)
        .map(|i| rtproof_judge::causes::Span {
            from_ns: edge(i),
            to_ns: edge(i + 1),
            share: i % 20,
        })
        .collect()
}

#[test]
fn degenerate_and_hostile_spikes_are_drawn() {
    let mut spike = sample::stall();
    let nothing =
        Explanation { spans: Vec::new(), shares: Vec::new(), ..spike.explanation.clone() };
    check(&draw("a", &nothing, None).into_string());
    spike.explanation.wake.ran_ns = spike.explanation.wake.due_ns;
    drawn(&spike);
    spike.explanation.wake.due_ns = u64::MAX;
    drawn(&spike);
    spike.explanation.wake.due_ns = 0;
    spike.explanation.wake.ran_ns = u64::MAX;
    drawn(&spike);
    for spike in &sample::hostile().worst {
        let svg = drawn(spike);
        check(&svg);
        assert!(!svg.contains("<script"));
    }
}
