//! A CPU quota: this process, spinning, or another one has so much of each period and no more.

use super::burst;
use crate::args::Args;
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::run::Frame;
use crate::{cgroup, files, run};

pub(super) fn quota(frame: Frame, args: &Args) -> Result<(), Failure> {
    let usage = Failure::Usage;
    let quota_us = args.needed_ns("quota").map_err(usage)? / 1_000;
    let of_us = args.duration_ns("of").map_err(usage)?.map_or(100_000, |ns| ns / 1_000);
    let pid = args.number("pid").map_err(usage)?;
    let group = args.text("cgroup").unwrap_or("/sys/fs/cgroup/lab-quota");
    let mut limits = run::limits(args).map_err(usage)?;
    limits.push(("cpu.max", format!("{quota_us} {of_us}")));
    frame.run("quota", args, |run, truth| {
        let target = pid.unwrap_or_else(|| u64::from(std::process::id()));
        let home = cgroup::of(target)?;
        cgroup::make(group, &limits)?;
        cgroup::put(group, target)?;
        let mut gaps = Occurrences::with_room(10_000);
        match pid {
            Some(_) => run.sleep_out(),
            None => {
                burst::spin(run, run.end_ns, burst::GAP_NS, &mut gaps);
            }
        }
        let back = cgroup::put(&home, target);
        let stat = files::read(format!("{group}/cpu.stat"))?;
        for key in ["nr_periods", "nr_throttled", "throttled_usec"] {
            truth.maybe(key, files::number(&stat, key));
        }
        truth.set("gaps", gaps.list());
        // A process that has ended needs no way back.
        if pid.is_some() { Ok(()) } else { back }
    })
}
