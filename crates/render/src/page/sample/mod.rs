//! Runs for tests: made from numbers of a fixed sequence, with the shapes that real machines show.

mod facts;
mod findings;
mod options;
mod shape;

pub(crate) use shape::Shape;

use shape::{Numbers, SECOND, idle_ns};

use rtproof_host::facts::tasks::Policy;
use rtproof_judge::Report;
use rtproof_record::{
    Run,
    run::{Cost, EndReason, HostSecond, Note, Second, Thread, ThreadEnd, ThreadInfo, Totals},
};
use rtproof_stats::{Histogram, Layout, Sample, TopSamples};

const TOP_KEPT: usize = 64;

/// A run of a shape: an idle third, then loads.
pub(crate) fn run(shape: &Shape) -> Run {
    let threads = (0..shape.cpus).map(|number| thread(shape, number)).collect();
    Run {
        meta: options::meta(shape),
        options: options::options(shape),
        facts_start: facts::of(shape),
        facts_end: Some(facts::of(shape)),
        cost: Cost {
            clock_read_ps: 21_400,
            clock_step_ns: 20,
            clock_getres_ns: 1,
            record_ps: 8_700,
            floor_ns: 1_450,
        },
        threads,
        host: (1..=shape.seconds).map(|second| options::host(shape, second)).collect(),
        loads: options::loads(shape),
        notes: vec![Note {
            at_ns: 0,
            id: "no-trace".into(),
            text: "Spikes are not explained: tracefs is not readable. Run as root.".into(),
            weakens: false,
        }],
        spikes: None,
        effects: None,
        surroundings: rtproof_record::Surroundings::default(),
        imported: None,
    }
}

/// A run `times` as long: its seconds over and over. Sums of the whole run stay as they are.
pub(crate) fn lengthened(mut run: Run, times: u64) -> Run {
    let length_ns = run.options.duration_ns;
    for thread in &mut run.threads {
        let once = thread.seconds.clone();
        thread.seconds = (0..times)
            .flat_map(|i| once.iter().map(move |second| shifted(second, i * length_ns)))
            .collect();
    }
    let once = run.host.clone();
    run.host = (0..times)
        .flat_map(|i| {
            let later =
                move |h: &HostSecond| HostSecond { at_ns: h.at_ns + i * length_ns, ..h.clone() };
            once.iter().map(later).collect::<Vec<_>>()
        })
        .collect();
    run.options.duration_ns *= times;
    for phase in &mut run.options.phases {
        (phase.from_ns, phase.to_ns) = (phase.from_ns * times, phase.to_ns * times);
    }
    run
}

fn shifted(second: &Second, by_ns: u64) -> Second {
    let mut second = second.clone();
    second.from_ns += by_ns;
    second.to_ns += by_ns;
    second.max_at_ns += by_ns;
    second
}

/// The report of a run, with findings of every status and remedy.
pub(crate) fn report(run: &Run) -> Report {
    let mut report = Report::new(run, &rtproof_judge::Integrity::Sealed);
    let name = run.facts_start.identity.hostname.value();
    report.findings = findings::all(name.map_or("", String::as_str));
    report
}

fn thread(shape: &Shape, number: u32) -> Thread {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ (u64::from(number) + 1) << 7);
    let period_ns = SECOND / shape.per_second.max(1);
    let mut top = TopSamples::new(TOP_KEPT);
    let mut thread = Thread {
        info: ThreadInfo {
            number,
            cpu: number + 2,
            tid: 4_211 + number,
            workload: "timer-wakeup".into(),
            policy: Policy::Fifo,
            priority: 98,
            locked: true,
            period_ns,
            first_due_ns: 0,
        },
        totals: Totals::default(),
        end: None,
        wake: Histogram::new(Layout::FINE),
        missed: Histogram::new(Layout::FINE),
        top: Vec::new(),
        seconds: Vec::new(),
    };
    let mut swallowed = 0;
    for second in 0..shape.seconds {
        let mut part = Part::new(shape, second * SECOND);
        for i in 0..shape.per_second {
            if swallowed > 0 {
                swallowed -= 1;
                continue;
            }
            let due_ns = second * SECOND + i * period_ns;
            let latency_ns = latency(shape, &mut numbers, number, due_ns);
            let sample = Sample { due_ns, latency_ns };
            swallowed = part.add(sample, period_ns);
            top.push(sample);
        }
        part.close(&mut thread);
    }
    thread.top = top.sorted();
    thread.end = Some(end(&thread));
    thread
}

fn end(thread: &Thread) -> ThreadEnd {
    ThreadEnd {
        reason: EndReason::Complete,
        scheduled: thread.totals.accounted(),
        faults_minor: 0,
        faults_major: 0,
        cpu_time_ns: thread.totals.wake.count() * 1_870,
        preemptions: 3,
    }
}

fn latency(shape: &Shape, numbers: &mut Numbers, cpu: u32, due_ns: u64) -> u64 {
    let usual = shape.usual_ns as f64 * (1.0 + 0.06 * f64::from(cpu % 5));
    let loaded = due_ns >= idle_ns(shape);
    let (scale, width) = if loaded { (1.9, 0.34) } else { (1.0, 0.09) };
    let mut latency = usual * scale * (width * numbers.normal()).exp();
    let rare = numbers.next();
    if loaded && rare < 0.004 {
        latency += usual * 3.0 * (0.45 * numbers.normal()).exp();
    }
    if shape.spikes && loaded && rare > 0.99992 {
        latency += usual * 40.0 * (0.9 * numbers.normal()).exp();
    }
    // One stall of the whole machine, at two thirds of the run.
    let stall_ns = shape.seconds * SECOND / 3 * 2 + 217_000_000;
    if shape.spikes && (stall_ns..stall_ns + 1_000_000).contains(&due_ns) {
        latency += 3_204_000.0 - 150_000.0 * f64::from(cpu);
    }
    latency.max(0.0) as u64
}

/// One second under way.
struct Part {
    second: Second,
    wake: Histogram,
    missed: Histogram,
    fine: (Histogram, Histogram),
    budget_ns: u64,
}

impl Part {
    fn new(shape: &Shape, from_ns: u64) -> Self {
        Self {
            second: Second {
                from_ns,
                to_ns: from_ns + SECOND,
                totals: Totals::default(),
                max_at_ns: 0,
                wake: Vec::new(),
                missed: Vec::new(),
                intervals: rtproof_stats::Moments::default(),
            },
            wake: Histogram::new(Layout::COARSE),
            missed: Histogram::new(Layout::COARSE),
            fine: (Histogram::new(Layout::FINE), Histogram::new(Layout::FINE)),
            budget_ns: shape.budget_ns.unwrap_or(u64::MAX),
        }
    }

    /// Counts a sample and the wake-ups that it swallowed; returns their number.
    fn add(&mut self, sample: Sample, period_ns: u64) -> u64 {
        let totals = &mut self.second.totals;
        if totals.wake.max().is_none_or(|max_ns| sample.latency_ns > max_ns) {
            self.second.max_at_ns = sample.due_ns;
        }
        totals.wake.push(sample.latency_ns);
        self.wake.record(sample.latency_ns);
        self.fine.0.record(sample.latency_ns);
        let is_late = u64::from(sample.latency_ns > self.budget_ns);
        totals.late_sampled += is_late;
        totals.late_clusters += is_late;
        let swallowed = sample.latency_ns / period_ns;
        for i in 1..=swallowed {
            let lateness_ns = sample.latency_ns - i * period_ns;
            totals.missed += 1;
            totals.missed_sum_ns += u128::from(lateness_ns);
            totals.late_missed += u64::from(lateness_ns > self.budget_ns);
            self.missed.record(lateness_ns);
            self.fine.1.record(lateness_ns);
        }
        swallowed
    }

    fn close(mut self, thread: &mut Thread) {
        let pairs = |h: &Histogram| h.buckets().map(|(bucket, n)| (bucket as u16, n)).collect();
        (self.second.wake, self.second.missed) = (pairs(&self.wake), pairs(&self.missed));
        thread.totals.merge(&self.second.totals);
        thread.wake.merge(&self.fine.0);
        thread.missed.merge(&self.fine.1);
        thread.seconds.push(self.second);
    }
}
