//! Trials: short, bounded experiments on the live machine that show what a check can only infer.
//!
//! A trial observes and does not judge: `rtproof_checks::trials` makes a finding of what it saw.
//! It leaves the machine as it was: what it starts ends by itself, at a deadline that each of its
//! threads looks at, and settings of the kernel's tracers are put back, also after a kill.
//!
//! To add one: copy what is in `_template.rs` into the file of its subject, fill it in, add one
//! line to [`TRIALS`] and one variant to [`Observation`].

pub mod isolation;
pub mod smi;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
pub mod throttling;

pub use rtproof_model::trial::{Observation, Refusal};

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{mm::MlockAllFlags, process::Signal};

use rtproof_host::{CpuList, Facts, Reading, Root};
use rtproof_model::trial::{Locked, MemlockObservation, PriorityObservation};

use crate::loads::LoadSettings;
use crate::task::{become_ordinary, pin_all};
use crate::{Policy, sys};

/// Every trial, in the order in which they are run.
pub const TRIALS: &[&dyn Trial] = &[
    // One line each. What is over at once comes first.
    &Priority,
    &Memlock,
    &throttling::Throttling,
    &isolation::IsolationTrial,
    &smi::Smi,
];

/// The trial of that name.
pub fn find(name: &str) -> Option<&'static dyn Trial> {
    TRIALS.iter().copied().find(|trial| trial.name() == name)
}

/// Runs a trial in a thread of its own, so that policy and affinity of the caller stay.
///
/// # Errors
/// No thread can be started, or the trial panicked.
pub fn run(trial: &dyn Trial, ctx: &TrialContext<'_>) -> std::io::Result<Observation> {
    let own = || {
        // A refusal changes where the trial's own work runs, not what it sees.
        let _ = become_ordinary();
        let measured = trial.measured(ctx);
        let online = ctx.facts.cpus.online.value().cloned().unwrap_or_default();
        let rest = online.difference(&measured);
        if !measured.is_empty() && !rest.is_empty() {
            let _ = pin_all(rest.as_slice());
        }
        trial.observe(ctx)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("rtproof/trial".into());
        let joined = thread.spawn_scoped(scope, own)?.join();
        joined.map_err(|_| std::io::Error::other("the trial panicked: report this as a bug"))
    })
}

// Memlock: can this user lock all memory of a process, and is it then free of page faults? Tried
// in a child process, so that the state of this one stays: `mlockall(MCL_CURRENT | MCL_FUTURE)`,
// some memory more, every page of it written some times.

/// First argument of the hidden subcommand.
pub(crate) const CHILD: &str = "memlock";

/// Longest time for the child.
const LONGEST_NS: u64 = 30_000_000_000;

/// Times that every page is written, some milliseconds apart: pages may be taken away again.
const ROUNDS: u32 = 3;

const PAGE: usize = 4096;

/// The trial `memlock`: whether all memory can be locked.
#[derive(Clone, Copy, Debug)]
pub struct Memlock;

impl Trial for Memlock {
    fn name(&self) -> &'static str {
        "memlock"
    }

    fn about(&self) -> &'static str {
        "locks all memory of a child process and counts its page faults"
    }

    fn observe(&self, ctx: &TrialContext<'_>) -> Observation {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        let bytes = ctx.memory_bytes;
        Observation::Memlock(MemlockObservation { bytes, run: ask_child(ctx), limit })
    }
}

fn ask_child(ctx: &TrialContext<'_>) -> Result<Locked, Refusal> {
    if ctx.memory_bytes > ctx.loads.memory_available / 2 {
        let text = "more than half of the memory that is available: not tried".into();
        return Err(Refusal { errno: None, text });
    }
    let failed = |error| Refusal::new("starting the child process", &error);
    let (program, prefix) = &ctx.loads.worker_command;
    let mut child = Command::new(program)
        .args(prefix)
        .args([CHILD, &ctx.memory_bytes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut status = None;
    ctx.wait(sys::now_ns(), LONGEST_NS, |_| {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let Some(status) = status else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Refusal { errno: None, text: "the child process did not end".into() });
    };
    let mut output = String::new();
    if let Some(stdout) = &mut child.stdout {
        // Some lines, which the pipe holds; what cannot be read is missing below.
        let _ = stdout.read_to_string(&mut output);
    }
    parse(&output).unwrap_or_else(|| {
        Err(Refusal { errno: None, text: format!("the child process ended early: {status}") })
    })
}

/// `locked BYTES MINOR MAJOR`, or `refused ERRNO CALL`.
fn parse(output: &str) -> Option<Result<Locked, Refusal>> {
    let (word, rest) = output.trim_end().split_once(' ')?;
    if word == "refused" {
        let (errno, call) = rest.split_once(' ')?;
        let error = std::io::Error::from_raw_os_error(errno.parse().ok()?);
        return Some(Err(Refusal::new(call, &error)));
    }
    let mut numbers = rest.split(' ').map(str::parse);
    let mut next = || numbers.next()?.ok();
    let locked = Locked { locked_bytes: next()?, faults_minor: next()?, faults_major: next()? };
    (word == "locked").then_some(Ok(locked))
}

/// The child: locks, writes, says what it saw on stdout.
///
/// # Errors
/// What cannot be said to the parent.
pub(crate) fn child(bytes: &str) -> Result<(), crate::loads::Failure> {
    let bytes: usize = bytes.parse().map_err(|error| format!("\"{bytes}\" bytes: {error}"))?;
    // The parent may be gone already; then the pipe has no reader, and this ends by itself.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    crate::loads::sacrifice();
    let answer = match lock_and_write(bytes) {
        Ok(observed) => {
            let Locked { locked_bytes, faults_minor, faults_major } = observed;
            format!("locked {locked_bytes} {faults_minor} {faults_major}\n")
        }
        Err((call, error)) => {
            format!("refused {} {call}\n", error.raw_os_error().unwrap_or(libc::ENOMEM))
        }
    };
    std::io::stdout().write_all(answer.as_bytes()).map_err(|error| error.to_string().into())
}

fn lock_and_write(bytes: usize) -> Result<Locked, (&'static str, std::io::Error)> {
    rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|error| ("mlockall(MCL_CURRENT | MCL_FUTURE)", error.into()))?;
    let mut memory: Vec<u8> = Vec::new();
    memory
        .try_reserve_exact(bytes)
        .map_err(|_| ("memory after mlockall", std::io::Error::from_raw_os_error(libc::ENOMEM)))?;
    let before = sys::usage();
    memory.resize(bytes, 1);
    for round in 0..ROUNDS {
        std::thread::sleep(Duration::from_millis(10));
        memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = byte.wrapping_add(round as u8));
        std::hint::black_box(&memory);
    }
    let after = sys::usage();
    let status = Root::live().read_text("/proc/self/status");
    let kib = status.value().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    });
    Ok(Locked {
        locked_bytes: kib.unwrap_or(0) << 10,
        faults_minor: after.faults_minor - before.faults_minor,
        faults_major: after.faults_major - before.faults_major,
    })
}

// Priority: does this user get SCHED_FIFO at the priority of the application? Asked for by a
// thread that ends at once; other possible reasons of a refusal are read, too.

/// The trial `priority`: whether the kernel grants SCHED_FIFO.
#[derive(Clone, Copy, Debug)]
pub struct Priority;

impl Trial for Priority {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn about(&self) -> &'static str {
        "asks for SCHED_FIFO at --priority and gives it back"
    }

    fn observe(&self, ctx: &TrialContext<'_>) -> Observation {
        let granted = sys::set_policy(Policy::Fifo, ctx.priority).and_then(|()| sys::policy());
        // The thread of the trial ends with this; what it reads meanwhile it reads as an ordinary.
        let _ = become_ordinary();
        let name = format!("SCHED_FIFO {}", ctx.priority);
        Observation::Priority(PriorityObservation {
            granted: granted
                .map(|(_, priority)| priority)
                .map_err(|error| Refusal::new(&name, &error)),
            limit: sys::rtprio_limit(),
            seccomp: seccomp(ctx.root),
            user_namespace: ctx.root.trimmed("/proc/self/uid_map").map(|map| {
                // user_namespaces(7): the initial one maps all ids to themselves.
                let words: Vec<&str> = map.split_whitespace().collect();
                words != ["0", "0", "4294967295"]
            }),
            group_runtime_us: group_runtime_us(ctx.root),
            ..PriorityObservation::not_requested(ctx.priority)
        })
    }
}

fn seccomp(root: &Root) -> Reading<u32> {
    root.read_text("/proc/self/status").and_then(|path, status| {
        let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        match mode.map(|mode| mode.trim().parse()) {
            Some(Ok(mode)) => Reading::known(path, mode),
            Some(Err(_)) => Reading::malformed(path, mode.unwrap_or_default(), "a number"),
            // CONFIG_SECCOMP is not set.
            None => Reading::known(path, 0),
        }
    })
}

/// `N:cpu,cpuacct:/path` of /proc/self/cgroup leads to the group. Where this process does not see
/// its own group (a container), the file is absent.
fn group_runtime_us(root: &Root) -> Reading<i64> {
    root.read_text("/proc/self/cgroup").and_then(|path, cgroup| {
        let group = cgroup.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, group) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|name| name == "cpu").then_some((controllers, group))
        });
        let Some((controllers, group)) = group else {
            return Reading::absent(path);
        };
        let group = group.trim_end_matches('/');
        let file = |folder: &str| {
            let path = format!("/sys/fs/cgroup/{folder}{group}/cpu.rt_runtime_us");
            root.number(&path, "microseconds")
        };
        file(controllers).or_else(|| file("cpu"))
    })
}

/// An experiment that observes what settings do not show (`check --prove`).
pub trait Trial: Sync + std::fmt::Debug {
    /// Name on the command line: lower case, one word.
    fn name(&self) -> &'static str;
    /// What it tries, as a phrase for `--help`.
    fn about(&self) -> &'static str;
    /// How long it takes.
    fn length(&self) -> Length {
        Length::AtOnce
    }
    /// Tries it. Called in a thread of its own, an ordinary one that stays off the CPUs of
    /// [`Trial::measured`] where there are others. Looks at [`TrialContext::is_stopped`] at least
    /// every 100 ms where it waits.
    fn observe(&self, ctx: &TrialContext<'_>) -> Observation;
    /// The CPUs that nothing else of ours may run on meanwhile.
    fn measured(&self, _: &TrialContext<'_>) -> CpuList {
        CpuList::default()
    }
}

/// How long a trial takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// No time that one would notice.
    AtOnce,
    /// A time that can be chosen.
    Time {
        /// Unless another is requested, nanoseconds.
        default_ns: u64,
        longest_ns: u64,
    },
}

impl Length {
    /// Nanoseconds, where `wanted_ns` or nothing is requested.
    pub fn of(self, wanted_ns: Option<u64>) -> u64 {
        match self {
            Self::AtOnce => 0,
            Self::Time { default_ns, longest_ns } => {
                wanted_ns.unwrap_or(default_ns).min(longest_ns)
            }
        }
    }
}

/// What a trial is given.
pub struct TrialContext<'a> {
    pub root: &'a Root,
    /// Facts of the machine.
    pub facts: &'a Facts,
    /// Real-time CPUs, online ones.
    pub rt_cpus: &'a CpuList,
    /// The other online CPUs that this process may use.
    pub housekeeping: &'a CpuList,
    /// SCHED_FIFO priority of the application.
    pub priority: u32,
    /// How long to try, nanoseconds; 0 where it is over at once.
    pub duration_ns: u64,
    /// Memory to lock, bytes.
    pub memory_bytes: u64,
    /// How loads are started; the trial sets their CPUs.
    pub loads: &'a LoadSettings,
    /// Whether the user wants it to end.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Called with the time that has gone by, nanoseconds, some times a second.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl TrialContext<'_> {
    /// Whether the trial shall end.
    pub fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    /// Waits until `duration_ns` after `start_ns`, or until the trial shall end or `each`, which is
    /// called about every 50 ms, says that it has; returns how long that was.
    fn wait(&self, start_ns: u64, duration_ns: u64, mut each: impl FnMut(u64) -> bool) -> u64 {
        loop {
            let elapsed_ns = sys::now_ns() - start_ns;
            (self.progress)(elapsed_ns.min(duration_ns));
            let has_ended = each(elapsed_ns);
            if has_ended || elapsed_ns >= duration_ns || self.is_stopped() {
                return elapsed_ns;
            }
            let left_ns = duration_ns - elapsed_ns;
            std::thread::sleep(Duration::from_nanos(left_ns.min(50_000_000)));
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::path::PathBuf;

    use rtproof_host::{CpuList, Facts, Root};

    use super::*;
    use crate::loads::LoadSettings;

    /// Runs a trial on this machine for a short time.
    pub(crate) fn try_out(trial: &dyn Trial, duration_ns: u64, stop: bool) -> Observation {
        try_with(trial, Facts::read(&Root::live()), duration_ns, stop)
    }

    /// The same as on a machine of one CPU: all of it runs on the last one.
    pub(crate) fn try_on_one_cpu(trial: &'static dyn Trial, duration_ns: u64) -> Observation {
        let mut facts = Facts::read(&Root::live());
        let last = facts.cpus.online.value().unwrap().iter().last().unwrap();
        facts.cpus.online = Reading::known("/x", CpuList::new([last]));
        let pinned = move || {
            crate::task::pin(last).unwrap();
            try_with(trial, facts, duration_ns, false)
        };
        std::thread::spawn(pinned).join().unwrap()
    }

    fn try_with(trial: &dyn Trial, facts: Facts, duration_ns: u64, stop: bool) -> Observation {
        let root = Root::live();
        let online = facts.cpus.online.value().cloned().unwrap();
        let last = CpuList::new(online.iter().last());
        let loads = LoadSettings {
            cpus: CpuList::default(),
            dir: PathBuf::new(),
            memory_available: 64 << 20,
            llc_bytes: 0,
            worker_command: (PathBuf::from("/nonexistent"), Vec::new()),
        };
        let ctx = TrialContext {
            root: &root,
            facts: &facts,
            rt_cpus: &last,
            housekeeping: &online.difference(&last),
            priority: 10,
            duration_ns,
            memory_bytes: 1 << 20,
            loads: &loads,
            stop: &|| stop,
            progress: &|_| (),
        };
        run(trial, &ctx).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_differ() {
        for trial in TRIALS {
            assert_eq!(find(trial.name()).map(Trial::name), Some(trial.name()));
            assert!(trial.name().chars().all(|c| c.is_ascii_lowercase()), "{}", trial.name());
            assert!(!trial.about().is_empty() && !trial.about().contains('\n'));
            assert_eq!(TRIALS.iter().filter(|other| other.name() == trial.name()).count(), 1);
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn a_time_is_bounded() {
        let length = Length::Time { default_ns: 3, longest_ns: 4 };
        assert_eq!((length.of(None), length.of(Some(2)), length.of(Some(9))), (3, 2, 4));
        assert_eq!(Length::AtOnce.of(Some(9)), 0);
    }

    #[test]
    fn the_template_runs() {
        let observed = testing::try_out(&template::Template, 0, false);
        assert!(matches!(observed, Observation::Priority(_)));
    }
}

#[cfg(test)]
mod memlock_tests {
    use super::testing::try_out;
    use super::*;

    #[test]
    fn the_child_s_report_is_read_back() {
        let locked = Locked { locked_bytes: 5, faults_minor: 1, faults_major: 0 };
        assert_eq!(parse("locked 5 1 0\n"), Some(Ok(locked)));
        let refused = parse("refused 1 mlockall(x | y)\n").unwrap().unwrap_err();
        assert!(refused.is_permission() && refused.text.starts_with("mlockall(x | y): "));
        for text in ["", "locked", "locked 5", "other 1 2 3", "refused x y"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_child_that_cannot_be_started_is_reported() {
        let Observation::Memlock(observed) = try_out(&Memlock, 0, false) else {
            panic!("another observation");
        };
        let refusal = observed.run.unwrap_err();
        assert!(refusal.text.starts_with("starting the child process: "), "{refusal:?}");
    }
}

#[cfg(test)]
mod priority_tests {
    use super::testing::try_out;
    use super::*;

    #[test]
    fn it_is_granted_or_refused_and_nothing_stays() {
        let Observation::Priority(observed) = try_out(&Priority, 0, false) else {
            panic!("another observation");
        };
        match &observed.granted {
            Ok(priority) => assert_eq!((*priority, observed.priority), (10, 10)),
            Err(refusal) => assert!(refusal.is_permission(), "{refusal:?}"),
        }
        assert!(observed.seccomp.value().is_some() && observed.user_namespace.value().is_some());
        assert_eq!(sys::policy().unwrap(), (Policy::Other, 0));
    }
}
