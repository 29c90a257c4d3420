//! stress-ng as a load: the system's own, run as the user says, its own account of its work read.

use rtproof_host::program::find;

/// Unit of the work that stress-ng reports.
pub(super) const UNIT: &str = "bogo operations";
pub(super) const NAME: &str = "stress-ng";
/// Prints the work of each stressor at the end.
const METRICS: &str = "--metrics-brief";

/// Program and arguments. Nothing is added but that it shall say how much it did.
pub(super) fn program(args: Vec<String>) -> std::io::Result<Vec<String>> {
    let path = find(NAME)?.to_string_lossy().into_owned();
    Ok(std::iter::once(path).chain(with_metrics(args)).collect())
}

fn with_metrics(mut args: Vec<String>) -> Vec<String> {
    if !args.iter().any(|arg| arg == "--metrics" || arg == METRICS) {
        args.push(METRICS.into());
    }
    args
}

/// Sum over all stressors; `None` where it reported none.
///
/// The line is `stress-ng: metrc: [PID] NAME OPS REAL USER SYSTEM RATE RATE` since 0.15 and the
/// same with `info:` before; later versions may add columns at the end.
pub(super) fn bogo_ops(output: &str) -> Option<u64> {
    let of_line = |line: &str| -> Option<u64> {
        let (_, rest) = line.split_once("] ")?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let operations = fields.next()?.parse().ok()?;
        let numbers = fields.map(|field| field.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?;
        (numbers.len() >= 5).then_some(operations)
    };
    output.lines().filter_map(of_line).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_summed_over_stressors() {
        let output = "\
stress-ng: info:  [11190] setting to a 1 second run per stressor
stress-ng: info:  [11190] dispatching hogs: 1 cpu
stress-ng: metrc: [11190] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [11190]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [11190] cpu                1528      1.00      1.00      0.00      1525.56        1525.48
stress-ng: metrc: [11190] vm                   20      1.00      1.00      0.00        20.00          20.00
stress-ng: info:  [11190] successful run completed in 1.00s
";
        assert_eq!(bogo_ops(output), Some(1548));
        assert_eq!(bogo_ops(&output.replace("metrc:", "info: ")), Some(1548));
        assert_eq!(bogo_ops("stress-ng: info:  [1] successful run completed in 1.00s\n"), None);
    }

    #[test]
    fn metrics_are_asked_for_once() {
        let with = |args: &[&str]| with_metrics(args.iter().map(ToString::to_string).collect());
        assert_eq!(with(&["--cpu", "1"]), ["--cpu", "1", "--metrics-brief"]);
        assert_eq!(with(&["--metrics"]), ["--metrics"]);
    }
}
