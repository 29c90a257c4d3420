//! What all plants share: waiting for the measurement, place and priority, begin and end, TERM, and
//! the truth at the end.

use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::process::Signal;

use crate::args::Args;
use crate::clock::{SECOND_NS, now_ns};
use crate::failure::Failure;
use crate::policy::Policy;
use crate::truth::Truth;
use crate::{cgroup, clock, files, measuring, policy};

const FOR_NS: u64 = 5 * SECOND_NS;
const FOR_NS_MAX: u64 = 120 * SECOND_NS;
/// Long: under icount the guest's clock races on while it waits for the shared folder.
const LIMIT_NS: u64 = 300 * SECOND_NS;
const LIMIT_NS_MAX: u64 = 600 * SECOND_NS;

/// A plant's frame in time.
#[derive(Debug)]
pub(crate) struct Run {
    /// When it is to begin.
    pub(crate) begin_ns: u64,
    /// When it is to end at the latest.
    pub(crate) end_ns: u64,
    stop: Arc<AtomicBool>,
}

impl Run {
    /// Whether time is up or TERM has come.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || now_ns() >= self.end_ns
    }

    /// Whether TERM has come.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until then or TERM; never beyond the end.
    pub(crate) fn sleep_until(&self, at_ns: u64) {
        clock::sleep_until(at_ns.min(self.end_ns), &self.stop);
    }

    /// Does `work` at the begin and every `every_ns` then, until time is up. Periods that have
    /// passed meanwhile are left out.
    pub(crate) fn each(
        &self,
        every_ns: u64,
        mut work: impl FnMut(u64) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut due_ns = self.begin_ns;
        while due_ns < self.end_ns && !self.is_over() {
            work(due_ns)?;
            due_ns += every_ns * (now_ns().saturating_sub(due_ns) / every_ns).max(1);
        }
        Ok(())
    }

    /// Sleeps until the end or TERM.
    pub(crate) fn sleep_out(&self) {
        self.sleep_until(self.end_ns);
    }
}

/// How a plant is brought out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Policy where none is given.
    pub(crate) policy: Policy,
    /// Whether --cpu says where to run; else it is the plant's own.
    pub(crate) pins: bool,
    /// Whether --cgroup is joined; else it is the plant's own.
    pub(crate) joins: bool,
}

impl Frame {
    pub(crate) const PLAIN: Self = Self { policy: Policy::Other, pins: true, joins: true };

    /// Prepares, waits, runs `work`, writes the truth.
    pub(crate) fn run(
        self,
        plant: &str,
        args: &Args,
        work: impl FnOnce(&Run, &mut Truth) -> Result<(), String>,
    ) -> Result<(), Failure> {
        let mut truth = Truth::of(plant);
        let result = self.try_run(args, &mut truth, work);
        match &result {
            Ok(()) => {}
            Err(Failure::Other(text) | Failure::NotMeasuring(text)) => truth.text("error", text),
            Err(Failure::Usage(_)) => return result,
        }
        if let Some(path) = args.text("truth") {
            truth.append(path)?;
        }
        result
    }

    fn try_run(
        self,
        args: &Args,
        truth: &mut Truth,
        work: impl FnOnce(&Run, &mut Truth) -> Result<(), String>,
    ) -> Result<(), Failure> {
        let usage = Failure::Usage;
        let policy = args.text("policy").map(Policy::parse).transpose().map_err(usage)?;
        let policy = policy.unwrap_or(self.policy);
        let for_ns = args.duration_ns("for").map_err(usage)?.unwrap_or(FOR_NS);
        let after_ns = args.duration_ns("after").map_err(usage)?.unwrap_or(0);
        let phase_ns = args.duration_ns("phase").map_err(usage)?;
        let every_ns = args.duration_ns("every").map_err(usage)?;
        let cpu = args.number("cpu").map_err(usage)?;
        if for_ns > FOR_NS_MAX || after_ns > FOR_NS_MAX {
            return Err(usage("--for and --after: at most 120s".into()));
        }
        truth.set("pid", rustix::process::getpid().as_raw_nonzero());
        truth.text("comm", files::read("/proc/self/comm").unwrap_or_default().trim_end());
        truth.text("policy", &policy.to_string());
        truth.maybe("cpu", cpu);
        // As an ordinary process, before this one is raised: looking must not disturb.
        let watcher = Watcher::start(args)?;
        if let (true, Some(group)) = (self.joins, args.text("cgroup")) {
            cgroup::make(group, &limits(args).map_err(usage)?)?;
            cgroup::put(group, 0)?;
        }
        if let (true, Some(cpu)) = (self.pins, cpu) {
            policy::pin(cpu)?;
        }
        policy.apply()?;
        let measuring_ns = watcher.map(Watcher::wait).transpose()?;
        truth.maybe("measuring_ns", measuring_ns);
        let mut begin_ns = now_ns().max(measuring_ns.unwrap_or(0)) + after_ns;
        if let Some(phase_ns) = phase_ns {
            begin_ns = aligned(begin_ns, every_ns.unwrap_or(SECOND_NS), phase_ns);
        }
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|error| format!("cannot catch signals: {error}"))?;
        }
        let run = Run { begin_ns, end_ns: begin_ns + for_ns, stop };
        run.sleep_until(begin_ns);
        truth.set("begin_ns", now_ns());
        let result = work(&run, truth);
        policy::lower();
        truth.set("end_ns", now_ns());
        truth.set("stopped", run.is_stopped());
        Ok(result?)
    }
}

/// Limits of the group that --cgroup names.
pub(crate) fn limits(args: &Args) -> Result<Vec<(&'static str, String)>, String> {
    let mut limits = Vec::new();
    for (option, file) in [("memory-max", "memory.max"), ("memory-high", "memory.high")] {
        if let Some(bytes) = args.bytes(option)? {
            limits.push((file, bytes.to_string()));
        }
    }
    Ok(limits)
}

/// The first time from `from_ns` on that is `phase_ns` after a multiple of `every_ns`.
fn aligned(from_ns: u64, every_ns: u64, phase_ns: u64) -> u64 {
    let every_ns = every_ns.max(1);
    let phase_ns = phase_ns % every_ns;
    let over_ns = (from_ns + every_ns - phase_ns) % every_ns;
    if over_ns == 0 { from_ns } else { from_ns + every_ns - over_ns }
}

/// Sleeps --after behind the moment in which `rtproof prove` is measuring, and says when that was.
pub(crate) fn wait_for(args: &Args) -> Result<(), Failure> {
    // A watcher that a plant has started ends with it.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| error.to_string())?;
    let limit_ns = args.duration_ns("limit").map_err(Failure::Usage)?.unwrap_or(LIMIT_NS);
    let after_ns = args.duration_ns("after").map_err(Failure::Usage)?.unwrap_or(0);
    let limit_ns = limit_ns.min(LIMIT_NS_MAX);
    let found = measuring::wait(limit_ns);
    if let Some(path) = args.text("truth") {
        let mut truth = Truth::of("wait-for");
        truth.maybe("measuring_ns", found);
        truth.append(path)?;
    }
    let Some(found_ns) = found else {
        let seconds = limit_ns / SECOND_NS;
        return Err(Failure::NotMeasuring(format!("rtproof did not measure within {seconds} s")));
    };
    clock::sleep(after_ns.min(FOR_NS_MAX));
    println!("{found_ns}");
    Ok(())
}

/// The process that waits for the measurement.
struct Watcher(std::process::Child);

impl Watcher {
    fn start(args: &Args) -> Result<Option<Self>, Failure> {
        if !args.has("when-measuring") {
            return Ok(None);
        }
        let mut command = Command::new("/proc/self/exe");
        command.arg("wait-for").stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(limit) = args.text("limit") {
            command.args(["--limit", limit]);
        }
        let child =
            command.spawn().map_err(|error| format!("cannot start the watcher: {error}"))?;
        Ok(Some(Self(child)))
    }

    fn wait(self) -> Result<u64, Failure> {
        let output =
            self.0.wait_with_output().map_err(|error| format!("the watcher is lost: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found = text.trim().parse().ok().filter(|_| output.status.success());
        found.ok_or_else(|| Failure::NotMeasuring("rtproof did not come to measure".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_kept() {
        assert_eq!(aligned(1_000, 100, 0), 1_000);
        assert_eq!(aligned(1_001, 100, 0), 1_100);
        assert_eq!(aligned(1_001, 100, 37), 1_037);
        assert_eq!(aligned(1_038, 100, 37), 1_137);
        assert_eq!(aligned(1_038, 100, 137), 1_137);
    }
}
