//! Memory pressure and page faults. The limits of --cgroup decide which: within them every page is
//! a minor fault, above --memory-high the kernel reclaims and makes the process wait.

use std::hint::black_box;

use crate::args::Args;
use crate::failure::Failure;
use crate::run::Frame;
use crate::{cgroup, files};

const BYTES: u64 = 64 << 20;
const BYTES_MAX: u64 = 4 << 30;
const PAGE: usize = 4096;

pub(super) fn memory(frame: Frame, args: &Args) -> Result<(), Failure> {
    let bytes = args.bytes("bytes").map_err(Failure::Usage)?.unwrap_or(BYTES);
    let size = usize::try_from(bytes).ok().filter(|_| bytes <= BYTES_MAX);
    let size = size.ok_or_else(|| Failure::Usage("--bytes: at most 4g".into()))?;
    frame.run("memory", args, |run, truth| {
        let before = files::faults();
        let mut count = 0_u64;
        while !run.is_over() {
            // Large enough to come from the kernel and go back there each time.
            let mut memory = vec![0_u8; size];
            for page in memory.chunks_mut(PAGE) {
                page[0] = 1;
                if run.is_over() {
                    break;
                }
            }
            black_box(&memory);
            count += 1;
        }
        let after = files::faults();
        truth.set("count", count);
        truth.set("bytes", bytes);
        truth.set("faults_minor", after.0.saturating_sub(before.0));
        truth.set("faults_major", after.1.saturating_sub(before.1));
        if args.has("cgroup") {
            let events = files::read(format!("{}/memory.events", cgroup::of(own_pid())?));
            let events = events.unwrap_or_default();
            for key in ["high", "max", "oom_kill"] {
                truth.maybe(key, files::number(&events, key));
            }
        }
        Ok(())
    })
}

fn own_pid() -> u64 {
    u64::from(std::process::id())
}
