//! Runs many cases on the cores that there are: guests under icount beside each other, guests that
//! need several host threads alone. Prints one line for each, and everything about those that fail.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, PoisonError},
    time::Instant,
};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::case::{Case, Mutation, Tier};
use crate::run::{Bench, Report};

/// Guests that never spoke, above which a run fails: then it is not chance.
const RETRIES_MAX: u32 = 2;

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
    /// Those that were not begun because the time was up.
    pub left_out: Vec<String>,
    rows: Vec<Value>,
}

impl Job {
    pub const fn case(case: Case) -> Self {
        Self { case, mutation: None }
    }

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

    /// Name of its folder.
    fn folder(&self) -> String {
        self.name().replace('/', "-").replace(' ', "_")
    }

    fn threads(&self, slots: u32) -> u32 {
        self.case.host_threads().min(slots)
    }

    /// An expectation that panics is a failed case like another.
    fn run(&self, bench: &Bench) -> Result<Report> {
        catch_unwind(AssertUnwindSafe(|| bench.run(&self.case, &self.folder())))
            .unwrap_or_else(|_| Err(anyhow!("panicked; the message is above")))
    }
}

impl Books {
    /// Whether everything went as it must.
    pub const fn all_well(&self) -> bool {
        self.failed == 0 && self.retries <= RETRIES_MAX
    }

    /// The books as JSON.
    pub fn json(&self) -> Value {
        json!({
            "schema": "rtproof/lab/1",
            "passed": self.passed,
            "failed": self.failed,
            "retries": self.retries,
            "left_out": self.left_out,
            "cases": self.rows,
        })
    }
}

struct Queue {
    waiting: Vec<Job>,
    free: u32,
}

/// A job with its host threads, which others get when it is dropped.
struct Started<'a> {
    job: Job,
    threads: u32,
    queue: &'a Mutex<Queue>,
    changed: &'a Condvar,
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.free += self.threads;
        self.changed.notify_all();
    }
}

/// Runs the jobs, at most `slots` host threads at once. After `until` none is begun any more.
pub fn run_all(
    bench: &Bench,
    mut jobs: Vec<Job>,
    slots: u32,
    keep: bool,
    until: Option<Instant>,
) -> Books {
    // What needs the whole machine comes last: nothing waits for it meanwhile. Cases come before
    // mutations.
    jobs.sort_by_key(|job| (job.mutation.is_some(), job.threads(slots)));
    jobs.reverse();
    let queue = Mutex::new(Queue { waiting: jobs, free: slots });
    let changed = Condvar::new();
    let books = Mutex::new(Books::default());
    std::thread::scope(|scope| {
        for _ in 0..slots {
            scope.spawn(|| {
                while let Some(started) = next(&queue, &changed, slots) {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
                        books.left_out.push(started.job.name());
                        continue;
                    }
                    let began = Instant::now();
                    let result = started.job.run(bench);
                    let seconds = began.elapsed().as_secs_f64();
                    let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
                    let is_well = enter(&mut books, &started.job, &result, seconds, bench);
                    if is_well && !keep {
                        // What cannot be removed is overwritten by the next run.
                        let _ = fs::remove_dir_all(bench.dir.join(started.job.folder()));
                    }
                }
            });
        }
    });
    books.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next<'a>(queue: &'a Mutex<Queue>, changed: &'a Condvar, slots: u32) -> Option<Started<'a>> {
    let mut waiting = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let threads = waiting.waiting.last()?.threads(slots);
        if threads <= waiting.free {
            waiting.free -= threads;
            let job = waiting.waiting.pop()?;
            return Some(Started { job, threads, queue, changed });
        }
        waiting = changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Why a job did not go as it must, with everything that helps to see it; empty if it did.
fn complaint(mutation: Option<&Mutation>, result: &Result<Report>) -> String {
    let report = match result {
        Ok(report) => report,
        Err(error) => return format!("  could not be run: {error:#}\n"),
    };
    let mut text = match mutation {
        None => failures_of(report),
        Some(mutation) if survived(report, mutation) => format!(
            "  the mutation must make \"{}...\" fail, and did not: what is expected does not \
             depend on it\n{}",
            mutation.fails,
            failures_of(report)
        ),
        Some(_) => String::new(),
    };
    if !text.is_empty() {
        let planted: Vec<String> = report.planted.iter().map(Value::to_string).collect();
        text.push_str(&format!("  planted: {}\n", planted.join(" ")));
        text.push_str(&format!("  truth: {}\n", report.truth.join(" ")));
        text.push_str(&format!("  end of the console:\n{}", report.console));
    }
    text
}

/// Enters a result; whether all is well.
fn enter(
    books: &mut Books,
    job: &Job,
    result: &Result<Report>,
    seconds: f64,
    bench: &Bench,
) -> bool {
    let complaint = complaint(job.mutation.as_ref(), result);
    let is_well = complaint.is_empty();
    let report = result.as_ref().ok();
    let tier = match job.case.tier {
        Tier::One => 1,
        Tier::Two => 2,
        Tier::Three => 3,
    };
    let outcome = if is_well { "ok    " } else { "FAILED" };
    println!("{outcome} T{tier} {seconds:6.1} s  {}", job.name());
    if is_well {
        books.passed += 1;
    } else {
        books.failed += 1;
        print!("{complaint}");
        println!("  everything: {}", bench.dir.join(job.folder()).display());
    }
    books.retries += report.map_or(0, |report| report.retries);
    books.rows.push(json!({
        "name": job.case.name,
        "mutation": job.mutation.as_ref().map(|mutation| mutation.says),
        "tier": tier,
        "passed": is_well,
        "seconds": seconds,
        "expectations": report.map_or(0, |report| report.asked),
        "planted": report.map_or(&[][..], |report| &report.planted),
        "truth": report.map_or(&[][..], |report| &report.truth),
        "complaint": complaint,
    }));
    is_well
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::expect::Failure;

    fn report(failures: &[&str]) -> Report {
        let failure = |what: &&str| Failure {
            what: (*what).to_owned(),
            expected: "3".to_owned(),
            came: "2".to_owned(),
        };
        Report {
            asked: 5,
            failures: failures.iter().map(failure).collect(),
            retries: 0,
            planted: vec![json!({ "cause": "irqsoff" })],
            truth: vec!["{\"count\":10}".to_owned()],
            console: "    last words\n".to_owned(),
        }
    }

    fn mutation(fails: &'static str) -> Mutation {
        Mutation { says: "nothing is planted", fails, change: Arc::new(|_| ()) }
    }

    #[test]
    fn a_failure_is_told_with_expectation_plants_and_console() {
        let text = complaint(None, &Ok(report(&["missed"])));
        for part in ["missed", "expected: 3", "came:     2", "irqsoff", "count", "last words"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(complaint(None, &Ok(report(&[]))), "");
    }

    #[test]
    fn a_mutation_must_fail_where_it_is_said() {
        assert_eq!(complaint(Some(&mutation("missed")), &Ok(report(&["missed, all"]))), "");
        for survivor in [report(&[]), report(&["worst"])] {
            let text = complaint(Some(&mutation("missed")), &Ok(survivor));
            assert!(text.contains("and did not"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_no_success_of_a_mutation() {
        let text = complaint(Some(&mutation("missed")), &Err(anyhow::anyhow!("no QEMU")));
        assert!(text.contains("no QEMU"), "{text}");
    }

    #[test]
    fn threads_come_back_when_a_case_panics() {
        let job = Job::case(Case::new("a/b", "", crate::machine::Machine::new("x")));
        let queue = Mutex::new(Queue { waiting: vec![job.clone(), job], free: 1 });
        let changed = Condvar::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _started = next(&queue, &changed, 1);
            panic!("as a case does");
        }));
        assert!(panicked.is_err());
        assert!(next(&queue, &changed, 1).is_some());
        assert!(next(&queue, &changed, 1).is_none());
        assert_eq!(queue.lock().unwrap().free, 1);
    }

    #[test]
    fn three_guests_that_never_spoke_fail_a_run() {
        assert!(Books { retries: 2, ..Books::default() }.all_well());
        assert!(!Books { retries: 3, ..Books::default() }.all_well());
    }
}
