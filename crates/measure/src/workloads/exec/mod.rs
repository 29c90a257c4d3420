//! The user's own cycle: a program that writes one line per cycle into a pipe.
//!
//! The program is what is measured: it runs on the CPU, with the policy. Our thread runs beside
//! it and records what it writes.

mod protocol;

use std::{
    io,
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use protocol::{Grid, Lines, ProtocolLine};
use rustix::process::{Pid, Signal};

use rtproof_host::trusted;

use super::workload::{
    Armed, Description, OwnCost, Program, Workload, WorkloadEnding, WorkloadError, WorkloadSetting,
};
use crate::cycle::Cycle;
use crate::task::pin;
use crate::{EndReason, Failure, Policy, Quantity, sys, task};

/// A program that is silent for this long, or for ten periods, hangs.
const SILENT_NS: u64 = 5_000_000_000;

/// Bytes of the longest command line that is accepted.
const COMMAND_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Exec {
    command: String,
}

/// Without a command, which it needs to run.
pub(super) const WORKLOAD: Exec = Exec { command: String::new() };

const DESCRIPTION: Description = Description {
    parameter: Some("the command, needed, as in exec:./my-cycle --fast; the shell takes it apart"),
    ..Description::new(
        "exec",
        "A program of your own, started on the CPU with the policy and priority. It writes one \
         line per cycle: how late the cycle was or how long it took, in nanoseconds, by its own \
         clock. The program decides what that covers. What it does between its readings of the \
         clock is not measured. Lines from before the run begins are its warm-up. Protocol and \
         examples in C, Rust and Python: docs/workloads.md.",
        Quantity::Lateness,
    )
    .on_other_cpu()
    .with_intervals()
};

impl Workload for Exec {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let command = parameter.unwrap_or_default();
        if command.is_empty() || command.len() > COMMAND_MAX || command.contains(['\n', '\0']) {
            let expected = "one command on one line, as exec:./my-cycle --fast";
            return Err(WorkloadError::parameter(self.name(), command, expected));
        }
        Ok(Arc::new(Self { command: command.into() }))
    }

    fn spec(&self) -> String {
        format!("{}:{}", self.name(), self.command)
    }

    /// Its cycles that say when they were due; of the others there are no spikes.
    fn wakes(&self) -> bool {
        true
    }

    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        let running = Running::start(&self.command, setting);
        let running = running.map_err(|error| {
            WorkloadError::unfit(self.name(), format!("`{}`: {error}", self.command))
        })?;
        task::leave(setting.cpu);
        Ok(Box::new(Reader {
            running: Some(running),
            lines: Lines::default(),
            grid: Grid::new(setting.period_ns),
            silent_ns: SILENT_NS.max(setting.period_ns.saturating_mul(10)),
            line_ns: line_cost_ns(),
            last_due_ns: None,
            last_value_ns: None,
            cycles: 0,
            failure: None,
        }))
    }
}

/// Reads what the program writes.
struct Reader {
    /// `None` once it was ended.
    running: Option<Running>,
    lines: Lines,
    grid: Grid,
    silent_ns: u64,
    line_ns: u64,
    last_due_ns: Option<u64>,
    last_value_ns: Option<u64>,
    cycles: u64,
    failure: Option<String>,
}

/// What is to happen after a look at the pipe.
enum Look {
    Nothing,
    Something,
    /// The program has closed its output.
    Ended,
}

impl Reader {
    fn follow(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        let Some(mut running) = self.running.take() else { return EndReason::Failed };
        let mut heard_ns = cycle.schedule().first_ns;
        loop {
            let now_ns = sys::now_ns();
            if cycle.hand_over(now_ns) {
                return EndReason::Starved;
            }
            match self.poll(&running, cycle) {
                Ok(Look::Something) => heard_ns = heard_ns.max(now_ns),
                Ok(Look::Nothing) => running.wait(cycle.edge_ns()),
                Ok(Look::Ended) => return self.at_end(&mut running),
                Err(Failure(why)) => return self.fail(why),
            }
            if now_ns >= cycle.schedule().end_ns {
                return match self.cycles {
                    0 => self.fail("it wrote no line. Does it flush each one?".into()),
                    _ => EndReason::Complete,
                };
            }
            if stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
            if now_ns > heard_ns.saturating_add(self.silent_ns) {
                let seconds = self.silent_ns / 1_000_000_000;
                return self.fail(format!(
                    "no line for {seconds} s after line {}: it hangs, or it does not flush its \
                     output with each line",
                    self.lines.count
                ));
            }
        }
    }

    fn poll(&mut self, running: &Running, cycle: &mut Cycle) -> Result<Look, Failure> {
        let mut buffer = [0_u8; 4096];
        match running.read(&mut buffer) {
            Ok(None) => Ok(Look::Nothing),
            Ok(Some(0)) => Ok(Look::Ended),
            Ok(Some(n)) => {
                let now_ns = sys::now_ns();
                let Self { lines, grid, last_due_ns, last_value_ns, cycles, .. } = self;
                let mut account = Account { cycle, grid, last_due_ns, last_value_ns, cycles };
                let fed = lines.feed(&buffer[..n], |line| account.take(line, now_ns));
                Ok(fed.map(|()| Look::Something)?)
            }
            Err(error) => Err(Failure(format!("its output cannot be read: {error}"))),
        }
    }

    /// It ended by itself: successfully if it reported that and ran cycles.
    fn at_end(&mut self, running: &mut Running) -> EndReason {
        match running.ended() {
            Some(status) if status.success() && self.cycles > 0 => EndReason::Complete,
            Some(status) => {
                let cycles = self.cycles;
                self.fail(format!("it ended with {status} after {cycles} cycles"))
            }
            None => self.fail("it closed its output and went on".into()),
        }
    }

    fn fail(&mut self, why: String) -> EndReason {
        self.failure = Some(format!("exec: {why}"));
        EndReason::Failed
    }
}

struct Account<'a> {
    cycle: &'a mut Cycle,
    grid: &'a mut Grid,
    last_due_ns: &'a mut Option<u64>,
    last_value_ns: &'a mut Option<u64>,
    cycles: &'a mut u64,
}

impl Account<'_> {
    fn take(&mut self, line: ProtocolLine, now_ns: u64) -> Result<(), &'static str> {
        let first_ns = self.cycle.schedule().first_ns;
        let is_within = |at_ns: u64| at_ns >= first_ns && at_ns < self.cycle.schedule().end_ns;
        match line {
            ProtocolLine::Value(value_ns) if is_within(now_ns) => {
                self.cycle.expect(1);
                // Several may have come at once, and no two samples are of the same time.
                let last_ns = self.last_value_ns.map_or(0, |ns| ns + 1);
                let at_ns = *self.last_value_ns.insert(now_ns.max(last_ns));
                self.cycle.take_value(at_ns, value_ns);
                *self.cycles += 1;
            }
            ProtocolLine::Due { due_ns, value_ns } if is_within(due_ns) => {
                let step = self.grid.step(due_ns, value_ns)?;
                self.cycle.expect(step.due);
                self.cycle.take_missed(step.due - 1, step.first_late_ns);
                self.cycle.take_sample(due_ns, value_ns);
                if let Some(last_ns) = self.last_due_ns.replace(due_ns) {
                    self.cycle.take_interval(due_ns - last_ns);
                }
                *self.cycles += 1;
            }
            ProtocolLine::Missed(count) if is_within(now_ns) => {
                self.cycle.expect(count);
                self.cycle.take_missed(count, 0);
            }
            // Its warm-up, or after the end.
            _ => {}
        }
        Ok(())
    }
}

/// The lines of a program for the fuzz targets, with the account that is kept of them.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn fuzz(
    bytes: &[u8],
    piece: usize,
    now_ns: u64,
    cycle: &mut Cycle,
) -> Result<(), Failure> {
    let (mut lines, mut grid) = (Lines::default(), Grid::new(cycle.schedule().period_ns));
    let (mut last_due_ns, mut last_value_ns, mut cycles) = (None, None, 0);
    for piece in bytes.chunks(piece) {
        let mut account = Account {
            cycle: &mut *cycle,
            grid: &mut grid,
            last_due_ns: &mut last_due_ns,
            last_value_ns: &mut last_value_ns,
            cycles: &mut cycles,
        };
        let fed = lines.feed(piece, |line| account.take(line, now_ns));
        fed?;
    }
    Ok(())
}

impl Armed for Reader {
    fn cost(&self) -> OwnCost {
        let ns = self.line_ns;
        let sentence = format!(
            "Writing a line takes the program about {ns} ns of its own cycle; its samples hold \
             what it puts into them."
        );
        OwnCost { ns: 0, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        cycle.begin_counting();
        let reason = self.follow(cycle, stop);
        // It ends with the run.
        self.running = None;
        reason
    }

    fn code(&self) -> Vec<usize> {
        Vec::new()
    }

    fn program(&self) -> Option<Program> {
        self.running.as_ref().map(|running| running.program.clone())
    }

    fn ending(&self) -> WorkloadEnding {
        WorkloadEnding { failure: self.failure.clone(), ..WorkloadEnding::default() }
    }
}

// The user's program: started on the measured CPU with the plan's policy, read without waiting,
// ended with its whole group.

/// Time from SIGTERM to SIGKILL.
const TERM_MAX: Duration = Duration::from_millis(300);

/// Room for output that has not been read yet, bytes: tens of thousands of lines.
const PIPE_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Running {
    child: Child,
    pid: Pid,
    stdout: ChildStdout,
    program: Program,
}

impl Running {
    /// Starts a command by the shell, in whose place it runs.
    fn start(command: &str, setting: &WorkloadSetting) -> io::Result<Self> {
        // A thread of its own, because what it starts has its CPU and policy from the beginning.
        let born = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("rtproof/exec".into());
            let spawned = thread.spawn_scoped(scope, || spawn(command, setting))?;
            spawned.join().unwrap_or_else(|_| Err(io::Error::other("cannot be started")))
        });
        let (mut child, mut policy_error, mut is_pinned) = born?;
        let pid = Pid::from_child(&child);
        let id = child.id();
        if setting.policy == Policy::Deadline {
            (policy_error, is_pinned) = make_deadline(id, setting.period_ns);
        }
        let (policy, priority) = sys::policy_of(id).unwrap_or((Policy::Other, 0));
        let program = Program { pid: id, policy, priority, policy_error, is_pinned };
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("a pipe is missing"))?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        // A smaller pipe works too.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_BYTES);
        Ok(Self { child, pid, stdout, program })
    }

    /// Reads what is there: 0 bytes at the end, `None` when nothing is there yet.
    fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.stdout, buffer) {
            Ok(n) => Ok(Some(n)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until something can be read, at most until a time of CLOCK_MONOTONIC.
    fn wait(&self, until_ns: u64) {
        use rustix::event::{PollFd, PollFlags, poll};
        let left_ns = until_ns.saturating_sub(sys::now_ns());
        // Looked at again in between: whether the run was stopped.
        let timeout = sys::timespec(left_ns.min(50_000_000));
        let mut fds = [PollFd::from_borrowed_fd(self.stdout.as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// How it ended, when it does within a moment after the end of its output.
    fn ended(&mut self) -> Option<std::process::ExitStatus> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if start.elapsed() < TERM_MAX => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return None,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may be gone already.
        let signal = |signal| rustix::process::kill_process_group(self.pid, signal);
        if let Ok(None) = self.child.try_wait() {
            let _ = signal(Signal::TERM);
            let start = Instant::now();
            while start.elapsed() < TERM_MAX && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let _ = signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

type Born = (Child, Option<String>, bool);

fn spawn(command: &str, setting: &WorkloadSetting) -> io::Result<Born> {
    let is_pinned = pin(setting.cpu).map(|()| true)?;
    let policy_error = match setting.policy {
        Policy::Deadline => None,
        policy => sys::set_policy_for_children(policy, setting.priority).err(),
    };
    let child = Command::new(trusted::find_program("sh")?)
        .args(["-c", &format!("exec {command}")])
        .env("RTPROOF_CPU", setting.cpu.to_string())
        .env("RTPROOF_PERIOD_NS", setting.period_ns.to_string())
        .env("RTPROOF_DURATION_NS", setting.duration_ns.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    Ok((child, policy_error.map(|error| error.to_string()), is_pinned))
}

/// As [`crate::thread`] does for its own threads: pinned where the kernel allows it.
fn make_deadline(pid: u32, period_ns: u64) -> (Option<String>, bool) {
    let Err(error) = sys::set_deadline(pid, period_ns) else { return (None, true) };
    let moved = sys::set_affinity(pid, sys::EVERY_CPU);
    if moved.is_ok() && sys::set_deadline(pid, period_ns).is_ok() {
        return (None, false);
    }
    (Some(error.to_string()), false)
}

/// What writing a line into a pipe takes, nanoseconds: the fastest of some.
fn line_cost_ns() -> u64 {
    let Ok((read, write)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK) else {
        return 0;
    };
    let mut buffer = [0_u8; 64];
    let times = (0..100).map(|_| {
        let start_ns = sys::now_ns();
        let _ = rustix::io::write(&write, b"1234567890123 45678\n");
        let end_ns = sys::now_ns();
        let _ = rustix::io::read(&read, &mut buffer);
        end_ns - start_ns
    });
    times.min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, cycle, slot};

    #[test]
    fn a_program_that_falls_silent_is_given_up() {
        let period_ns = 1_000_000;
        let setting = WorkloadSetting {
            cpu: 0,
            policy: Policy::Other,
            priority: 0,
            period_ns,
            duration_ns: 30_000_000_000,
            clock: crate::clock::Clock::Monotonic,
            ledger: Arc::default(),
        };
        let mut reader = Reader {
            running: Some(Running::start("sh -c 'echo 1; sleep 60'", &setting).expect("a shell")),
            lines: Lines::default(),
            grid: Grid::new(period_ns),
            silent_ns: 3_000_000_000,
            line_ns: 0,
            last_due_ns: None,
            last_value_ns: None,
            cycles: 0,
            failure: None,
        };
        let (_give, empty) = rtrb::RingBuffer::new(4);
        let (full, _take) = rtrb::RingBuffer::new(4);
        let now_ns = sys::now_ns();
        let schedule = cycle::Schedule {
            first_ns: now_ns,
            period_ns,
            end_ns: now_ns + setting.duration_ns,
            origin_ns: now_ns,
            slot_ns: cycle::SLOT_NS,
            budget_ns: u64::MAX,
        };
        let (outlet, _inlet) = slot::ring(u64::MAX);
        let mut cycle = Cycle::new(schedule, Box::default(), empty, full, outlet);
        let pid = reader.program().expect("a program").pid;
        assert_eq!(reader.run(&mut cycle, &AtomicBool::new(false)), EndReason::Failed);
        let failure = reader.ending().failure.expect("why");
        assert!(failure.contains("after line 1: it hangs"), "{failure}");
        assert_eq!(cycle.scheduled(), 1);
        assert!(sys::policy_of(pid).is_err(), "it is gone");
    }
}
