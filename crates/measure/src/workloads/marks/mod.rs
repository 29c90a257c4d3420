//! Cycles that an application marks itself, through a ring in shared memory.

mod ring;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ring::{MarkRing, Marked};

use rtproof_host::{CpuList, Root};

use super::workload::{
    Armed, Description, OwnCost, Program, Workload, WorkloadEnding, WorkloadError, WorkloadSetting,
    sleep_until,
};
use crate::cycle::Cycle;
use crate::{EndReason, Failure, Policy, Quantity, sys, task};

/// Time between two looks: a ring of 4096 cycles holds this much of 200 kHz.
const POLL_INTERVAL_NS: u64 = 20_000_000;

/// Folder of rings, unless they are elsewhere.
const FOLDER: &str = "/dev/shm";

/// What names of rings begin with.
const PREFIX: &str = "rtproof-mark-";

/// The ring of an application: of a process, or in a file.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    which: String,
}

/// Without an application, which it needs to run.
pub(super) const WORKLOAD: Marks = Marks { which: String::new() };

const DESCRIPTION: Description = Description {
    parameter: Some(
        "the application's process id or the path of its ring, needed, as in marks:4711",
    ),
    ..Description::new(
        "marks",
        "Duration of the cycles of a running application, from the begin to the end that it marks. \
         It marks them with rtproof_mark.h (C, C++) or the crate rtproof-mark, through a ring in \
         shared memory. The application runs as it does; nothing of it is moved or raised. Not how late a \
         cycle began. Cycles that were overwritten before they were read are counted as lost, and \
         are not in the account; the period of the measurement is not used.",
        Quantity::Duration,
    )
    .on_other_cpu()
    .with_intervals()
};

impl Workload for Marks {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let which = parameter.unwrap_or_default();
        let is_pid = which.parse::<u32>().is_ok();
        if !(is_pid || which.contains('/')) || which.contains('\0') {
            let expected = "a process id, or a path with a slash, as /dev/shm/rtproof-mark-4711";
            return Err(WorkloadError::parameter(self.name(), which, expected));
        }
        Ok(Arc::new(Self { which: which.into() }))
    }

    fn spec(&self) -> String {
        format!("{}:{}", self.name(), self.which)
    }

    fn application_cpus(&self) -> Option<Vec<u32>> {
        // Why a ring cannot be read is said when it is armed.
        Some(self.open().map_or_else(|_| Vec::new(), |ring| cpus_of(&ring)))
    }

    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        let ring = self.open().map_err(|why| WorkloadError::unfit(self.name(), why))?;
        task::leave(setting.cpu);
        Ok(Box::new(Reader {
            ring,
            last_begin_ns: None,
            cycles: 0,
            ending: WorkloadEnding::default(),
        }))
    }
}

impl Marks {
    fn open(&self) -> Result<MarkRing, Failure> {
        let path = match self.which.parse::<u32>() {
            Ok(pid) => of_process(pid, &folders())?,
            Err(_) => PathBuf::from(&self.which),
        };
        MarkRing::await_made(&path)
    }
}

/// CPUs that the thread that marks may run on; empty: not known.
fn cpus_of(ring: &MarkRing) -> Vec<u32> {
    // 0 would be this thread.
    if ring.tid == 0 { Vec::new() } else { sys::affinity(ring.tid).unwrap_or_default() }
}

fn folders() -> Vec<String> {
    let own = std::env::var("XDG_RUNTIME_DIR").ok().filter(|folder| folder.starts_with('/'));
    std::iter::once(FOLDER.to_owned()).chain(own).collect()
}

/// Whether a process has marked a cycle in any of its rings.
pub(crate) fn has_marked(pid: u32) -> bool {
    let rings = rings_of(pid, &folders());
    rings.iter().any(|ring| MarkRing::open(ring).is_ok_and(|ring| ring.has_cycles()))
}

/// The ring of a process; which to choose where it has several.
fn of_process(pid: u32, folders: &[String]) -> Result<PathBuf, Failure> {
    let exact = format!("{PREFIX}{pid}");
    let rings = rings_of(pid, folders);
    match rings.as_slice() {
        [ring] => Ok(ring.clone()),
        [] => Err(Failure(format!(
            "process {pid} has no ring {exact} in {}; does it call rtproof_mark_open?",
            folders.join(" or ")
        ))),
        several => {
            let several: Vec<_> =
                several.iter().take(8).map(|ring| ring.display().to_string()).collect();
            Err(format!("process {pid} has several rings; name one: {}", several.join(", ")).into())
        }
    }
}

fn rings_of(pid: u32, folders: &[String]) -> Vec<PathBuf> {
    let root = Root::live();
    let (exact, begin) = (format!("{PREFIX}{pid}"), format!("{PREFIX}{pid}-"));
    let mut rings = Vec::new();
    for folder in folders {
        let names = root.list_dir(folder);
        let of_it = |name: &&String| **name == exact || name.starts_with(&begin);
        let names = names.value().into_iter().flatten().filter(of_it);
        rings.extend(names.map(|name| Path::new(folder).join(name)));
    }
    rings
}

/// A ring for the fuzz targets, read after each change.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn fuzz(
    path: &Path,
    change: &mut dyn FnMut() -> bool,
    cycle: &mut Cycle,
) -> Result<(), Failure> {
    let ring = MarkRing::open(path)?;
    let mut reader =
        Reader { ring, last_begin_ns: None, cycles: 0, ending: WorkloadEnding::default() };
    while change() {
        reader.poll(cycle)?;
    }
    Ok(())
}

struct Reader {
    ring: MarkRing,
    last_begin_ns: Option<u64>,
    cycles: u64,
    ending: WorkloadEnding,
}

impl Reader {
    fn follow(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> Result<EndReason, Failure> {
        let schedule = *cycle.schedule();
        sleep_until(schedule.first_ns);
        self.ring.skip()?;
        let could_be_seen = self.is_alive();
        loop {
            let now_ns = sys::now_ns();
            if cycle.hand_over(now_ns) {
                return Ok(EndReason::Starved);
            }
            let was_alive = self.is_alive();
            self.poll(cycle)?;
            if now_ns >= schedule.end_ns {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(EndReason::Stopped);
            }
            // From another namespace it can be read but not seen.
            if could_be_seen && !was_alive {
                break;
            }
            sleep_until(cycle.edge_ns().min(now_ns + POLL_INTERVAL_NS));
        }
        match self.cycles {
            0 => Err("no cycle was marked; does the application run?".into()),
            _ => Ok(EndReason::Complete),
        }
    }

    fn poll(&mut self, cycle: &mut Cycle) -> Result<(), Failure> {
        let Self { ring, last_begin_ns, cycles, ending } = self;
        let found = ring.read(|Marked { begin_ns, end_ns }| {
            cycle.take_sample(begin_ns, end_ns - begin_ns);
            if let Some(last_ns) = last_begin_ns.replace(begin_ns) {
                cycle.take_interval(begin_ns.saturating_sub(last_ns));
            }
            *cycles += 1;
        })?;
        // From the ring's own count, not from what was handed out.
        cycle.expect(found.marked - found.lost);
        ending.lost += found.lost;
        if found.lost > 0 {
            // Marks in between were lost.
            *last_begin_ns = None;
        }
        Ok(())
    }

    fn is_alive(&self) -> bool {
        let pid = rustix::process::Pid::from_raw(self.ring.pid.cast_signed());
        let asked = pid.map(rustix::process::test_kill_process);
        asked.is_some_and(|asked| asked != Err(rustix::io::Errno::SRCH))
    }
}

impl Armed for Reader {
    fn cost(&self) -> OwnCost {
        let clock_ps = crate::calibrate::clock_read_ps(crate::clock::Clock::Monotonic);
        let ns = clock_ps.div_ceil(1000);
        let cpus = CpuList::new(cpus_of(&self.ring)).to_string();
        let place = match cpus.as_str() {
            "" => "which CPUs it may run on is not known".to_owned(),
            cpus => format!("it may run on CPU {cpus}"),
        };
        let sentence = format!(
            "Each sample holds one reading of the clock, {ns} ns; a pair of marks takes the \
             application two of them and some stores to memory. The marks are those of thread {}; \
             {place}.",
            self.ring.tid
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        cycle.begin_counting();
        self.follow(cycle, stop).unwrap_or_else(|why| {
            self.ending.failure = Some(format!("marks: {why}"));
            EndReason::Failed
        })
    }

    fn code(&self) -> Vec<usize> {
        Vec::new()
    }

    fn program(&self) -> Option<Program> {
        let tid = self.ring.tid;
        let (policy, priority) = sys::policy_of(tid).ok().filter(|_| tid != 0)?;
        // A deadline is the application's own, as is everything else.
        let is_pinned =
            policy != Policy::Deadline && sys::affinity(tid).is_ok_and(|cpus| cpus.len() == 1);
        Some(Program { pid: tid, policy, priority, policy_error: None, is_pinned })
    }

    fn ending(&self) -> WorkloadEnding {
        self.ending.clone()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test's own file")]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_ring_or_is_asked_for_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let folders = [dir.path().display().to_string(), "/no/such/folder".into()];
        let make = |name: &str| std::fs::File::create(dir.path().join(name)).expect("a file");
        let error = of_process(12, &folders).expect_err("none");
        assert!(error.0.contains("no ring rtproof-mark-12 in"), "{error}");
        make("rtproof-mark-123");
        make("rtproof-mark-12-control");
        let ring = of_process(12, &folders).expect("one");
        assert!(ring.ends_with("rtproof-mark-12-control"));
        make("rtproof-mark-12");
        let error = of_process(12, &folders).expect_err("two");
        assert!(error.0.contains("name one: ") && error.0.contains("12-control"), "{error}");
    }

    #[test]
    fn what_names_no_application_is_refused() {
        for text in ["", "app", "-5", "99999999999"] {
            let error = WORKLOAD.with(Some(text)).expect_err(text).to_string();
            assert!(error.contains("a process id, or a path"), "{error}");
        }
        let spec = |text| WORKLOAD.with(Some(text)).expect(text).spec();
        assert_eq!(spec("12"), "marks:12");
        assert_eq!(spec("./ring"), "marks:./ring");
    }
}
