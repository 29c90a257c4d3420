//! An application of our own: a thread that sleeps to absolute times and works each cycle, some of
//! them too long, or with memory that it has not touched before.

use std::hint::black_box;

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::run::Frame;
use crate::{clock, files};

const PAGE: usize = 4096;
const BYTES_MAX: u64 = 256 << 20;

pub(super) fn cycle(frame: Frame, args: &Args) -> Result<(), Failure> {
    let usage = Failure::Usage;
    let busy_ns = args.needed_ns("busy").map_err(usage)?;
    let every_ns = args.needed_ns("every").map_err(usage)?;
    let long_ns = args.duration_ns("long").map_err(usage)?.unwrap_or(busy_ns);
    let each = args.number("each").map_err(usage)?.unwrap_or(u64::MAX).max(1);
    let bytes = args.bytes("bytes").map_err(usage)?.unwrap_or(0);
    let bytes = usize::try_from(bytes.min(BYTES_MAX)).unwrap_or(0);
    frame.run("cycle", args, |run, truth| {
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns.saturating_mul(each));
        let mut long = Occurrences::with_room(room);
        let faults = files::faults();
        let (mut cycles, mut late, mut worst_ns) = (0_u64, 0_u64, 0_u64);
        let mut due_ns = run.begin_ns;
        while !run.is_over() {
            // Also where that has passed: as applications do that make up for it.
            clock::sleep_once(due_ns);
            let begin_ns = now_ns();
            let late_ns = begin_ns.saturating_sub(due_ns);
            late += u64::from(late_ns >= every_ns);
            worst_ns = worst_ns.max(late_ns);
            cycles += 1;
            if cycles.is_multiple_of(each) {
                let memory = touch(bytes);
                work(begin_ns + long_ns);
                long.add(begin_ns, now_ns());
                // To give it back is work of its own, without a fault.
                drop(memory);
            } else {
                work(begin_ns + busy_ns);
            }
            due_ns += every_ns;
        }
        long.tell(truth);
        truth.set("cycles", cycles);
        truth.set("late", late);
        truth.set("worst_late_ns", worst_ns);
        truth.set("faults_minor", files::faults().0.saturating_sub(faults.0));
        Ok(())
    })
}

fn work(until_ns: u64) {
    while now_ns() < until_ns {}
}

/// Memory from the kernel, each page once; large enough to go back there at the end.
fn touch(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0_u8; bytes];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(memory)
}
