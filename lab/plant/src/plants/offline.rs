//! Takes a CPU off and brings it back. Each time all CPUs stop for a moment.

use std::path::PathBuf;

use crate::args::Args;
use crate::clock::{MS_NS, SECOND_NS, now_ns};
use crate::failure::Failure;
use crate::files;
use crate::occurrences::Occurrences;
use crate::run::Frame;

pub(super) fn offline(frame: Frame, args: &Args) -> Result<(), Failure> {
    let usage = Failure::Usage;
    args.needed("cpu").map_err(usage)?;
    let cpu = args.number("cpu").map_err(usage)?.unwrap_or(0);
    let down_ns = args.duration_ns("down").map_err(usage)?.unwrap_or(100 * MS_NS);
    let every_ns = args.duration_ns("every").map_err(usage)?.unwrap_or(SECOND_NS);
    let times = args.number("times").map_err(usage)?.unwrap_or(1);
    let path = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    frame.run("offline", args, |run, truth| {
        let mut off = Occurrences::default();
        let mut stops = Occurrences::default();
        let mut due_ns = run.begin_ns;
        while off.count() < times && !run.is_over() {
            run.sleep_until(due_ns);
            let begin_ns = now_ns();
            files::write(&path, "0")?;
            let down_at_ns = now_ns();
            run.sleep_until(down_at_ns + down_ns);
            let up_at_ns = now_ns();
            files::write(&path, "1")?;
            let end_ns = now_ns();
            off.add(begin_ns, end_ns);
            stops.add(begin_ns, down_at_ns);
            stops.add(up_at_ns, end_ns);
            due_ns = (due_ns + every_ns).max(end_ns);
        }
        off.tell(truth);
        truth.set("transitions", stops.list());
        Ok(())
    })
}
