//! A disturbance that a knob takes away: a thread above the measured ones. Bounded: it ends with
//! the test, and at the latest after some minutes.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rtproof_host::{
    CpuList,
    tune::{Scheduling, Tasks},
};
use rtproof_measure::LiveTasks;

/// Beyond what a hypervisor on a busy host takes away at once, which has been 30 ms.
const BURN: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(180);

/// Burns CPU 0 while its file does not hold what fixes it.
pub(crate) struct Plant {
    stop: Arc<AtomicBool>,
    join: Option<JoinHandle<()>>,
}

impl Plant {
    /// `None` without the right to a real-time policy.
    pub(crate) fn start(file: PathBuf, fixed: &'static str) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, receiver) = std::sync::mpsc::channel();
        let stopped = Arc::clone(&stop);
        let join = std::thread::spawn(move || {
            let begun = Instant::now();
            let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let above = Scheduling {
                policy: Some("fifo".into()),
                priority: Some(90),
                cpus: Some(CpuList::new([0])),
                ..Scheduling::default()
            };
            let may = LiveTasks.set(tid, &above).is_ok();
            tell.send(may).expect("a receiver");
            while may && !stopped.load(Ordering::Relaxed) && begun.elapsed() < LONGEST {
                std::thread::sleep(PAUSE);
                let is_fixed = fs::read_to_string(&file).is_ok_and(|text| text.trim() == fixed);
                let burns = Instant::now();
                while !is_fixed && burns.elapsed() < BURN {
                    std::hint::spin_loop();
                }
            }
        });
        let plant = Self { stop, join: Some(join) };
        receiver.recv().expect("an answer").then_some(plant)
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(join) = self.join.take() {
            let _ = join.join();
        }
    }
}
