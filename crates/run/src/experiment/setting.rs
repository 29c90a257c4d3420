//! Options of measuring as knobs: they are switched like changes of the machine, and are none.
//! Nothing of them outlives the process, so that no journal is needed.

use std::{collections::BTreeMap, fmt};

use rtproof_host::{
    Root, pm_qos,
    tune::{Scheduling, Tasks},
};
use rtproof_measure::{
    LiveTasks,
    loads::{LoadSet, Runner, Running, Settings},
};

/// An option of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `/dev/cpu_dma_latency` held at so many microseconds.
    DmaLatency(u32),
    /// Policy of the measured threads.
    Policy(String),
    /// Priority of the measured threads, SCHED_FIFO or SCHED_RR.
    Priority(u32),
    /// A load beside that of the whole time.
    Load(LoadSet),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DmaLatency(us) => write!(f, "--dma-latency {us}"),
            Self::Policy(policy) => write!(f, "--policy {policy}"),
            Self::Priority(priority) => write!(f, "--priority {priority}"),
            Self::Load(load) => write!(f, "--load {load}"),
        }
    }
}

/// What is set, and what has to be put back.
pub struct Held<'a> {
    root: &'a Root,
    loads_at: Option<Settings>,
    tids: Vec<u32>,
    latency: Option<pm_qos::Held>,
    loads: Vec<Running>,
    /// How threads were scheduled before.
    before: BTreeMap<u32, Scheduling>,
}

impl<'a> Held<'a> {
    /// Nothing is set yet.
    #[must_use]
    pub fn new(root: &'a Root, loads_at: Option<Settings>) -> Self {
        let (tids, before) = (Vec::new(), BTreeMap::new());
        Self { root, loads_at, tids, latency: None, loads: Vec::new(), before }
    }

    /// The measured threads, once they run.
    pub fn threads(&mut self, tids: &[u32]) {
        self.tids = tids.to_vec();
    }

    /// Makes these be set, and nothing else.
    ///
    /// # Errors
    /// One that cannot be set; those before it stay until the next call.
    pub fn set(&mut self, settings: &[Setting]) -> anyhow::Result<()> {
        self.clear()?;
        for setting in settings {
            match setting {
                Setting::DmaLatency(us) => self.latency = Some(pm_qos::hold(self.root, *us)?),
                Setting::Policy(policy) => {
                    let is_real_time = policy == "fifo" || policy == "rr";
                    let policy = Some(policy.clone());
                    self.schedule(|now| Scheduling {
                        policy: policy.clone(),
                        // An ordinary thread has none, and a real-time one needs one.
                        priority: is_real_time
                            .then(|| now.priority.filter(|p| *p > 0).unwrap_or(1)),
                        ..Scheduling::default()
                    })?;
                }
                Setting::Priority(priority) => self.schedule(|now| Scheduling {
                    policy: now.policy.clone(),
                    priority: Some(*priority),
                    ..Scheduling::default()
                })?,
                Setting::Load(load) => {
                    let Some(at) = &self.loads_at else {
                        anyhow::bail!("load {load}: there is no place for loads here")
                    };
                    for spec in load.as_slice() {
                        self.loads.push(Runner::start(spec, at)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn schedule(&mut self, to: impl Fn(&Scheduling) -> Scheduling) -> anyhow::Result<()> {
        anyhow::ensure!(!self.tids.is_empty(), "no measured thread runs yet");
        for &tid in &self.tids {
            let now = LiveTasks.scheduling(tid)?;
            LiveTasks.set(tid, &to(&now))?;
            self.before.entry(tid).or_insert(now);
        }
        Ok(())
    }

    fn clear(&mut self) -> anyhow::Result<()> {
        self.latency = None;
        drop(Runner::stop_all(std::mem::take(&mut self.loads)));
        while let Some((tid, before)) = self.before.pop_first() {
            let put = Scheduling { cpus: None, ..before };
            // A thread that has ended needs nothing.
            match LiveTasks.set(tid, &put) {
                Err(error) if error.raw_os_error() != Some(3) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The process ends: what could not be put back goes with its threads.
        let _ = self.clear();
    }
}
