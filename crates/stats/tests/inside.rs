//! The example of an application that computes inside its loop: nothing is allocated there, and
//! what it computes is right.

#[allow(dead_code, reason = "its main is not run here")]
#[path = "../../../examples/inside/inside.rs"]
mod example;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

use rtproof_stats::{binomial::Random, moments::Shape, quantile::Q};

use example::Statistics;

/// Counts what this thread allocates or frees.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system allocator unchanged.
#[expect(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: a pointer that `alloc` returned, with its layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `body` calls the allocator.
fn calls(body: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    body();
    CALLS.get() - before
}

/// A latency in a hundred is slow, and one in ten thousand a stall: a value above 2^20 is summed
/// by other code.
fn latency_ns(random: &mut Random) -> u64 {
    let base = match (random.unit() * 10_000.0) as u64 {
        0 => 5_000_000.0,
        1..=100 => 50_000.0,
        _ => 2_000.0,
    };
    (base * (0.9 + 0.2 * random.unit())) as u64
}

#[test]
fn nothing_is_allocated_in_the_loop() {
    assert!(calls(|| drop(std::hint::black_box(Box::new(1)))) >= 2, "the allocator is in use");
    let mut statistics = Statistics::new();
    let mut beyond = 0;
    let period = Duration::from_micros(50);
    assert_eq!(calls(|| beyond = example::cycles(3_000, period, &mut statistics)), 0);
    assert_eq!((statistics.all.count(), statistics.recent().count()), (3_000, 3_000));
    let mut text = Vec::new();
    example::table(&statistics, beyond, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("cycles 3000, ") && text.contains("\np99 "), "{text}");

    // What it may compute at any time, and values of all sizes.
    let mut random = Random::new(7);
    let during = calls(|| {
        for _ in 0..100_000 {
            statistics.record(latency_ns(&mut random));
        }
        let recent = statistics.recent();
        let shape = Shape::of(&recent).or_else(|| Shape::of(&statistics.all));
        let p2 = statistics.p2.each_ref().map(|p2| p2.estimate());
        let p99 = statistics.quantile(Q::P99);
        std::hint::black_box((recent.sd(), shape, p2, p99));
    });
    assert_eq!(during, 0);
}

#[test]
fn it_computes_what_all_values_give() {
    let (mut statistics, mut random) = (Statistics::new(), Random::new(3));
    let mut values: Vec<u64> = (0..50_000).map(|_| latency_ns(&mut random)).collect();
    values.iter().for_each(|&value| statistics.record(value));
    let sums = |values: &[u64]| {
        let n = values.len() as f64;
        let mean = values.iter().map(|&value| value as f64).sum::<f64>() / n;
        let sum = |power| values.iter().map(|&x| (x as f64 - mean).powi(power)).sum::<f64>();
        let (m2, m3, m4) = (sum(2) / n, sum(3) / n, sum(4) / n);
        [mean, (m2 * n / (n - 1.0)).sqrt(), m3 / m2.powf(1.5), m4 / (m2 * m2)]
    };
    let shape = Shape::of(&statistics.all).expect("a shape");
    let all = &statistics.all;
    let got = [all.mean(), all.sd(), Some(shape.g1), Some(shape.kurtosis)];
    for (got, want) in got.into_iter().zip(sums(&values)) {
        let got = got.expect("enough values");
        assert!((got / want - 1.0).abs() < 1e-9, "{got}, not {want}");
    }
    // 50 windows: the last ten are kept.
    let recent = statistics.recent();
    assert_eq!(recent.count(), 10_000);
    let want = sums(&values[40_000..]);
    assert!((recent.mean().expect("values") / want[0] - 1.0).abs() < 1e-12);
    values.sort_unstable();
    for q in [Q::P50, Q::P95, Q::P99] {
        let exact = values[q.rank(50_000) as usize - 1];
        let got = statistics.quantile(q).expect("enough values");
        assert!(got >= exact && got as f64 <= exact as f64 * 1.0079, "{}: {got} {exact}", q.name());
    }
    assert_eq!(statistics.quantile(Q { above: 1, of: 1_000_000 }), None);
}
