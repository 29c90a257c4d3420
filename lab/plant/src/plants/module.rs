//! Lets the kernel module plant what user space cannot, and writes its books into the truth.

use crate::args::Args;
use crate::clock::{MS_NS, SECOND_NS, now_ns};
use crate::failure::Failure;
use crate::files;
use crate::occurrences::Occurrences;
use crate::run::{Frame, Run};
use crate::truth::Truth;

const FILE: &str = "/proc/rtproof_plant";
/// From the command to the first occurrence, at least.
const LEAD_NS: u64 = 20 * MS_NS;

pub(super) fn module(frame: Frame, args: &Args) -> Result<(), Failure> {
    let usage = Failure::Usage;
    let kind = args.needed("kind").map_err(usage)?.to_owned();
    let busy_ns = args.needed_ns("busy").map_err(usage)?;
    let every_ns = args.needed_ns("every").map_err(usage)?;
    let times = args.number("times").map_err(usage)?.unwrap_or(1);
    let cpu = args.number("cpu").map_err(usage)?.unwrap_or(0);
    frame.run("module", args, |run, truth| {
        truth.text("kind", &kind);
        // The frame has slept until the begin; a phase is kept by whole periods.
        let mut start_ns = run.begin_ns;
        while start_ns < now_ns() + LEAD_NS {
            start_ns += every_ns;
        }
        let (us, every_us) = (busy_ns / 1_000, every_ns / 1_000);
        files::write(
            FILE,
            &format!(
                "{kind} cpu={cpu} us={us} every_us={every_us} count={times} start_ns={start_ns}"
            ),
        )
        .map_err(|error| format!("{error}; is the module loaded?"))?;
        truth.set("start_ns", start_ns);
        // Reading all the books is work that would disturb: not before they are closed.
        let last_ns = start_ns + every_us * 1_000 * times.saturating_sub(1) + busy_ns;
        let books = closed(run, last_ns)?;
        tell(&books, truth);
        Ok(())
    })
}

/// The books once the plant is done.
fn closed(run: &Run, last_ns: u64) -> Result<String, String> {
    let never = std::sync::atomic::AtomicBool::new(false);
    crate::clock::sleep_until(last_ns + 20 * MS_NS, &never);
    loop {
        let books = files::read(FILE)?;
        if books.starts_with("state done") {
            return Ok(books);
        }
        if run.is_stopped() || now_ns() > last_ns + 5 * SECOND_NS {
            return Err(format!("{FILE}: not done: {}", books.lines().next().unwrap_or_default()));
        }
        crate::clock::sleep(20 * MS_NS);
    }
}

/// `due begin end smis` lines.
fn tell(books: &str, truth: &mut Truth) {
    let mut all = Occurrences::default();
    let mut smis = Vec::new();
    for line in books.lines() {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        if let [_, begin_ns, end_ns, count] = numbers[..] {
            all.add(begin_ns, end_ns);
            smis.push(count);
        }
    }
    all.tell(truth);
    truth.maybe("smis", smis.last());
}
