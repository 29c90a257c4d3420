//! Runs many cases on the cores that there are: guests under icount beside each other, guests that
//! need several host threads alone. Prints one line for each, and everything about those that fail.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Instant,
};

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    case::{Case, Mutation, Tier},
    run::{Bench, Report},
};

/// Guests that never spoke, above which a run fails: then it is not chance.
const RETRIES_MAX: u32 = 2;

/// What to run.
#[derive(Clone)]
pub struct Job {
    case: Case,
    mutation: Option<Mutation>,
}

/// The books of a run.
#[derive(Debug, Default)]
pub struct Books {
    /// Cases and mutations that went as they must.
    pub passed: u32,
    /// Those that did not.
    pub failed: u32,
    /// Guests started a second time.
    pub retries: u32,
    rows: Vec<Value>,
}

impl Job {
    /// The case itself.
    #[must_use]
    pub const fn case(case: Case) -> Self {
        Self { case, mutation: None }
    }

    /// Its mutations.
    #[must_use]
    pub fn mutations(case: &Case) -> Vec<Self> {
        let job = |mutation: &Mutation| {
            let mut changed = case.clone();
            (mutation.change)(&mut changed);
            Self { case: changed, mutation: Some(mutation.clone()) }
        };
        case.mutations.iter().map(job).collect()
    }

    fn name(&self) -> String {
        match &self.mutation {
            None => self.case.name.clone(),
            Some(mutation) => format!("{} ~ {}", self.case.name, mutation.says),
        }
    }

    fn threads(&self, slots: u32) -> u32 {
        self.case.host_threads().min(slots)
    }
}

impl Books {
    /// Whether everything went as it must.
    #[must_use]
    pub const fn all_well(&self) -> bool {
        self.failed == 0 && self.retries <= RETRIES_MAX
    }

    /// The books as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "schema": "rtproof/lab/1",
            "passed": self.passed,
            "failed": self.failed,
            "retries": self.retries,
            "cases": self.rows,
        })
    }
}

struct Queue {
    waiting: Vec<Job>,
    free: u32,
}

/// Runs the jobs, at most `slots` host threads at once.
#[must_use]
pub fn run_all(bench: &Bench, mut jobs: Vec<Job>, slots: u32, keep: bool) -> Books {
    // What needs the whole machine comes last: nothing waits for it meanwhile.
    jobs.sort_by_key(|job| job.threads(slots));
    jobs.reverse();
    let queue = Mutex::new(Queue { waiting: jobs, free: slots });
    let changed = Condvar::new();
    let books = Mutex::new(Books::default());
    std::thread::scope(|scope| {
        for _ in 0..slots {
            scope.spawn(|| {
                while let Some(job) = next(&queue, &changed, slots) {
                    let began = Instant::now();
                    let name = job.name();
                    let folder = name.replace('/', "-").replace(' ', "_");
                    let result = bench.run(&job.case, &folder, keep);
                    let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
                    enter(&mut books, &job, &name, result, began.elapsed().as_secs_f64(), bench);
                    drop(books);
                    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                    queue.free += job.threads(slots);
                    changed.notify_all();
                }
            });
        }
    });
    books.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next(queue: &Mutex<Queue>, changed: &Condvar, slots: u32) -> Option<Job> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let needs = queue.waiting.last()?.threads(slots);
        if needs <= queue.free {
            queue.free -= needs;
            return queue.waiting.pop();
        }
        queue = changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

fn enter(
    books: &mut Books,
    job: &Job,
    name: &str,
    result: Result<Report>,
    seconds: f64,
    bench: &Bench,
) {
    let mut complaint = String::new();
    match &result {
        Err(error) => complaint = format!("could not be run: {error:#}\n"),
        Ok(report) => {
            books.retries += report.retries;
            match &job.mutation {
                None => complaint = failures_of(report),
                Some(mutation) if survived(report, mutation) => {
                    complaint = format!(
                        "the mutation must make \"{}...\" fail, and did not: what is expected \
                         does not depend on it\n{}",
                        mutation.fails,
                        failures_of(report)
                    );
                }
                Some(_) => {}
            }
            if !complaint.is_empty() {
                let planted: Vec<String> = report.planted.iter().map(Value::to_string).collect();
                complaint.push_str(&format!("  planted: {}\n", planted.join(" ")));
                complaint.push_str(&format!("  truth: {}\n", report.truth.join(" ")));
                complaint.push_str(&format!("  end of the console:\n{}", report.console));
            }
        }
    }
    let is_well = complaint.is_empty();
    let asked = result.as_ref().map_or(0, |report| report.asked);
    let tier = match job.case.tier {
        Tier::One => 1,
        Tier::Two => 2,
        Tier::Three => 3,
    };
    println!("{} T{tier} {seconds:6.1} s  {name}", if is_well { "ok    " } else { "FAILED" });
    if is_well {
        books.passed += 1;
    } else {
        books.failed += 1;
        let folder = bench.dir.join(name.replace('/', "-").replace(' ', "_"));
        print!("{complaint}");
        println!("  everything: {}", folder.display());
    }
    books.rows.push(json!({
        "name": job.case.name,
        "mutation": job.mutation.as_ref().map(|mutation| mutation.says),
        "tier": tier,
        "passed": is_well,
        "seconds": seconds,
        "expectations": asked,
        "planted": result.as_ref().map_or(&[][..], |report| &report.planted),
        "truth": result.as_ref().map_or(&[][..], |report| &report.truth),
        "complaint": complaint,
    }));
}

fn survived(report: &Report, mutation: &Mutation) -> bool {
    !report.failures.iter().any(|failure| failure.what.starts_with(mutation.fails))
}

fn failures_of(report: &Report) -> String {
    let line = |failure: &crate::expect::Failure| {
        format!(
            "  {}\n    expected: {}\n    came:     {}\n",
            failure.what, failure.expected, failure.came
        )
    };
    report.failures.iter().map(line).collect()
}
