//! Moving statistics against numpy and scipy, and against sums made anew for each window.

use proptest::prelude::*;

use super::*;
use crate::{Histogram, Layout};

const S: u64 = 1_000_000_000;

/// Contents of a row.
struct Second {
    thread: u32,
    at_s: u64,
    wake: Moments,
    missed: u64,
    cells: Vec<(u16, u64)>,
}

fn second(thread: u32, at_s: u64, values: &[u64], missed: u64) -> Second {
    let (mut wake, mut cells) = (Moments::default(), Histogram::new(Layout::COARSE));
    for &value in values {
        wake.push(value);
        cells.record(value);
    }
    let cells = cells.buckets().map(|(cell, n)| (cell as u16, n)).collect();
    Second { thread, at_s, wake, missed, cells }
}

fn spans(window_s: u64, half_life_s: u64) -> Spans {
    Spans { step_ns: S, window_ns: window_s * S, half_life_ns: half_life_s * S }
}

fn steps(seconds: &[Second], threads: u32, spans: Spans) -> Vec<MovingStep> {
    let row = |of: &'_ Second| (of.thread, of.at_s * S, (of.at_s + 1) * S);
    let mut rows: Vec<MovingRow<'_>> = seconds
        .iter()
        .map(|of| {
            let (thread, from_ns, to_ns) = row(of);
            let (wake, missed, cells) = (&of.wake, of.missed, &of.cells[..]);
            MovingRow { thread, from_ns, to_ns, wake, missed, cells }
        })
        .collect();
    let mut found = Vec::new();
    each(&mut rows, threads, spans, |step| found.push(step));
    found
}

/// 100 samples in each of 40 s, none in seconds 16 and 17, three of 200 us more in second 23.
fn value(s: u64, i: u64) -> u64 {
    let k = s * 100 + i;
    5000 + k * k * 7919 % 9973 + if s == 23 && i < 3 { 200_000 } else { 0 } + s * 40
}

fn reference_run() -> Vec<Second> {
    let values = |s| (0..100).map(move |i| value(s, i)).collect::<Vec<_>>();
    (0..40).filter(|s| !(16..18).contains(s)).map(|s| second(0, s, &values(s), 0)).collect()
}

/// At the end of a second: n, mean, sd, skewness, kurtosis, samples at the percentiles.
type Wanted = (usize, [f64; 5], [u64; 5]);

#[track_caller]
fn same(got: Option<Values>, (_, want, percentiles): &Wanted) {
    let got = got.expect("values");
    let found =
        [got.n, got.mean_ns, got.sd_ns.unwrap(), got.skewness.unwrap(), got.kurtosis.unwrap()];
    for (found, want) in found.iter().zip(want) {
        assert!((found / want - 1.0).abs() < 1e-9, "{found}, want {want}: {got:?}");
    }
    for (at, (found, want)) in got.percentiles_ns.iter().zip(percentiles).enumerate() {
        if !Q::TABLE[at].is_carried_by(got.n as u64) {
            assert_eq!(*found, None, "{} of {}", Q::TABLE[at].name(), got.n);
            continue;
        }
        let found = found.expect("enough samples");
        let most = *want as f64 * (1.0 + PERCENTILE_ERROR);
        assert!(found >= *want && found as f64 <= most, "{found}, want {want}: {got:?}");
    }
}

// numpy 2.4.6: mean, std(ddof=1), np.average with weights 2^(-age / 3 s) and (sum w)^2 / sum w^2;
// scipy 1.17.1: stats.skew, stats.kurtosis; percentiles: the sample at which the sorted weights
// reach the share. A window of 5 s.
const WINDOWED: &[Wanted] = &[
    (
        4,
        [500.0, 10225.164, 2884.148443751672, -0.07763628115531014, -1.1403793014586463],
        [5560, 10440, 14647, 14951, 15107],
    ),
    (
        9,
        [500.0, 10179.138, 2826.8659191418346, 0.019515225057468638, -1.212268670834001],
        [5774, 10047, 14515, 15100, 15289],
    ),
    (
        20,
        [300.0, 10744.736666666666, 2857.7658229787667, 0.08356522048330867, -1.1854830556388682],
        [6562, 10837, 15360, 15628, 15692],
    ),
    (
        24,
        [500.0, 12016.366, 15813.681326567843, 12.127011740795167, 150.49369932830703],
        [6244, 10716, 15467, 15767, 213154],
    ),
    (
        39,
        [500.0, 11549.442, 2946.164985685928, -0.030430557482417502, -1.2894759894338854],
        [7090, 11635, 15989, 16351, 16499],
    ),
];

const CUMULATIVE: &[Wanted] = &[
    (
        20,
        [1900.0, 10336.26894736842, 2869.351829566514, 0.019945462804026877, -1.1670869256923972],
        [5876, 10357, 14817, 15373, 15691],
    ),
    (
        24,
        [2300.0, 10680.455217391303, 7823.9521689302455, 22.157888004527774, 567.1531628156924],
        [5957, 10378, 14976, 15559, 209_204],
    ),
    (
        39,
        [3800.0, 10955.126842105263, 6368.03232644724, 24.76445919212537, 778.8390423911445],
        [6215, 10784, 15413, 16037, 16499],
    ),
];

const EXPONENTIAL: &[Wanted] = &[
    (
        4,
        [
            452.93477478639556,
            10235.843422587961,
            2889.0435053486895,
            -0.07109932585984972,
            -1.1336951164381421,
        ],
        [5560, 10442, 14704, 14966, 15107],
    ),
    (
        20,
        [
            667.1050596482836,
            10592.000438134753,
            2863.0075958934444,
            0.06602505308457168,
            -1.1782163267283545,
        ],
        [6168, 10629, 15229, 15597, 15692],
    ),
    (
        24,
        [
            759.5279134389001,
            11847.260738525843,
            14912.041221378518,
            12.815878350598924,
            168.99065690440736,
        ],
        [6244, 10716, 15474, 15767, 213154],
    ),
    (
        39,
        [
            865.3309549419337,
            11507.818239518194,
            3852.1611598858094,
            21.60435628021683,
            1122.4173077950754,
        ],
        [7021, 11563, 15892, 16340, 16499],
    ),
];

#[test]
fn values_are_those_of_numpy_and_scipy() {
    let found = steps(&reference_run(), 1, spans(5, 3));
    assert_eq!(found.len(), 40);
    WINDOWED.iter().for_each(|want| same(found[want.0].windowed, want));
    CUMULATIVE.iter().for_each(|want| same(found[want.0].cumulative, want));
    EXPONENTIAL.iter().for_each(|want| same(found[want.0].exponential, want));
}

#[test]
fn a_gap_is_a_gap() {
    let found = steps(&reference_run(), 1, spans(2, 3));
    let at: Vec<u64> = found.iter().filter(|step| step.gaps > 0).map(|s| s.from_ns / S).collect();
    assert_eq!(at, [16, 17]);
    assert!(found[16].exponential.is_none() && found[17].windowed.is_none());
    assert_eq!(found[17].window_gaps, 2);
    assert_eq!(found[16].windowed.map(|of| of.n), Some(100.0), "half of the window");
    assert_eq!(found[17].cumulative, found[15].cumulative);
    // Of two threads, one of which stops: the other goes on, and its gaps are counted.
    let mut two = reference_run();
    two.extend((0..20).map(|s| second(1, s, &[7000], u64::from(s == 3))));
    let found = steps(&two, 2, spans(4, 3));
    let gaps: Vec<u32> = found.iter().map(|step| step.gaps).collect();
    assert_eq!(gaps[14..22], [0, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!((found[3].missed, found[6].window_missed, found[7].window_missed), (1, 1, 0));
}

#[test]
fn a_window_that_is_not_full_has_no_value_and_a_rest_no_step() {
    let mut run = reference_run();
    let mut rest = second(0, 40, &[1, 2, 3], 0);
    rest.missed = 9;
    run.push(rest);
    let mut rows: Vec<MovingRow<'_>> = run
        .iter()
        .map(|of| MovingRow {
            thread: 0,
            from_ns: of.at_s * S,
            to_ns: if of.at_s == 40 { 40 * S + 3 } else { (of.at_s + 1) * S },
            wake: &of.wake,
            missed: of.missed,
            cells: &of.cells,
        })
        .collect();
    let mut found = Vec::new();
    each(&mut rows, 1, spans(5, 3), |step| found.push(step));
    assert_eq!(found.len(), 40);
    let last = found.last().expect("steps");
    assert_eq!((last.n, last.missed, last.to_ns), (103, 9, 40 * S + 3));
    assert!(found[3].windowed.is_none() && found[4].windowed.is_some());
    assert!(steps(&run[..3], 1, spans(60, 3)).iter().all(|step| step.windowed.is_none()));
    let mut nothing = Vec::new();
    each(&mut [], 3, spans(5, 3), |step| nothing.push(step));
    assert!(nothing.is_empty());
}

#[test]
fn equal_samples_have_no_shape_and_lost_sums_none_either() {
    let same: Vec<Second> = (0..50).map(|s| second(0, s, &[12_345; 7], 0)).collect();
    for step in steps(&same, 1, spans(5, 2)) {
        let of = step.exponential.expect("samples");
        assert_eq!((of.mean_ns, of.sd_ns, of.skewness), (12_345.0, Some(0.0), None));
    }
    let mut hour = reference_run();
    hour[10] = second(0, 10, &[3_600_000_000_000; 100], 0);
    let found = steps(&hour, 1, spans(5, 3));
    let has = |at: usize| {
        let skew = |of: Option<Values>| of.and_then(|of| of.skewness).is_some();
        (skew(found[at].windowed), skew(found[at].exponential), skew(found[at].cumulative))
    };
    assert_eq!(
        (has(9), has(12), has(15)),
        ((true, true, true), (false, false, false), (true, false, false))
    );
}

#[test]
fn weights_that_grow_for_long_are_rebased() {
    // 3000 half-lives: 2^3000 is no number.
    let long: Vec<Second> = (0..3000).map(|s| second(0, s, &[value(s % 40, 1); 40], 0)).collect();
    let found = steps(&long, 1, spans(5, 1));
    let (last, near) = (found[2999].exponential, found[39 + 40 * 40].exponential);
    let (last, near) = last.zip(near).expect("values");
    assert!((last.mean_ns / near.mean_ns - 1.0).abs() < 0.5 && last.n.is_finite());
    assert!(last.percentiles_ns[1].is_some());
}

proptest! {
    #[test]
    fn a_window_is_what_its_seconds_are(
        values in prop::collection::vec(
            prop::collection::vec(0_u64..50_000_000, 0..30), 1..40),
        window in 1_u64..12,
    ) {
        let run: Vec<Second> =
            values.iter().enumerate().map(|(s, v)| second(0, s as u64, v, 1)).collect();
        for (at, step) in steps(&run, 1, spans(window, 4)).iter().enumerate() {
            let Some(from) = (at + 1).checked_sub(window as usize) else {
                prop_assert_eq!(step.windowed, None);
                continue;
            };
            let mut all: Vec<u64> = values[from..=at].concat();
            all.sort_unstable();
            let whole = second(0, 0, &all, 0).wake;
            prop_assert_eq!(step.window_missed, window);
            let Some(found) = step.windowed else {
                prop_assert!(all.is_empty());
                continue;
            };
            prop_assert_eq!((found.n, Some(found.mean_ns)), (all.len() as f64, whole.mean()));
            prop_assert_eq!((found.sd_ns, found.skewness),
                            (whole.sd(), Shape::of(&whole).map(|shape| shape.g1)));
            for (q, got) in Q::TABLE.into_iter().zip(found.percentiles_ns) {
                let n = all.len() as u64;
                let sample = all[q.rank(n) as usize - 1];
                let cell = Layout::COARSE.upper(Layout::COARSE.index(sample));
                prop_assert_eq!(got, q.is_carried_by(n).then_some(cell));
            }
        }
    }
}
