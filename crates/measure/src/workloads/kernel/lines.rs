//! Lines of the kernel's own measuring tracers, as `trace_pipe` prints them. No I/O here.
//!
//! Forms: Documentation/trace/timerlat-tracer.rst, osnoise-tracer.rst, hwlat_detector.rst; the
//! trace's clock is `mono`.

/// Longest line that is kept.
const LINE_MAX: usize = 4096;

/// Where timerlat reads its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// In the timer's interrupt.
    Irq,
    Thread,
    /// Back in user space.
    User,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// timerlat: activation, where, how late.
    Timerlat { seq: u64, context: Context, latency_ns: u64 },
    /// osnoise: a gap above the threshold.
    Noise { start_ns: u64, duration_ns: u64 },
    /// hwlat: the largest gaps of a window, and the non-maskable interrupts in it.
    Hardware { seq: u64, inner_us: u64, outer_us: u64, nmis: u64 },
    /// The kernel lost events here.
    Lost(u64),
}

impl Event {
    /// How late or how long; 0 for one that is neither.
    pub(super) fn value_ns(self) -> u64 {
        match self {
            Self::Timerlat { latency_ns, .. } => latency_ns,
            Self::Noise { duration_ns, .. } => duration_ns,
            Self::Hardware { inner_us, outer_us, .. } => {
                inner_us.max(outer_us).saturating_mul(1000)
            }
            Self::Lost(_) => 0,
        }
    }
}

/// A line with its CPU and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) cpu: u32,
    /// CLOCK_MONOTONIC, to the microsecond.
    pub(super) at_ns: u64,
    pub(super) event: Event,
}

/// Reads a line; `None`: it says something else.
pub(super) fn line(text: &str) -> Option<Line> {
    if let Some(rest) = text.strip_prefix("CPU:") {
        // `CPU:1 [LOST 38 EVENTS]`
        let (cpu, rest) = rest.split_once(" [LOST ")?;
        let count = rest.split_once(' ')?.0.parse().ok()?;
        return Some(Line { cpu: cpu.trim().parse().ok()?, at_ns: 0, event: Event::Lost(count) });
    }
    let (head, event) = [timerlat, noise, hardware].iter().find_map(|form| form(text))?;
    let at_ns = seconds_ns(head.split_whitespace().last()?.trim_end_matches(':'))?;
    // Names of tasks may hold brackets: the last ones are the CPU's.
    let (before, _) = head.rsplit_once(']')?;
    let cpu = before.rsplit_once('[')?.1.parse().ok()?;
    Some(Line { cpu, at_ns, event })
}

/// `#1     context    irq timer_latency       932 ns`
fn timerlat(text: &str) -> Option<(&str, Event)> {
    let (head, rest) = text.rsplit_once(": #")?;
    let mut words = rest.split_whitespace();
    let seq = words.next()?.parse().ok()?;
    let context = match (words.next()?, words.next()?) {
        ("context", "irq") => Context::Irq,
        ("context", "thread") => Context::Thread,
        ("context", "user-ret") => Context::User,
        _ => return None,
    };
    let latency_ns = match (words.next()?, words.next()?.parse(), words.next()?) {
        ("timer_latency", Ok(latency_ns), "ns") => latency_ns,
        _ => return None,
    };
    Some((head, Event::Timerlat { seq, context, latency_ns }))
}

/// `sample_threshold: start 5789.857529929 duration 1845 ns interference 2`
fn noise(text: &str) -> Option<(&str, Event)> {
    let (head, rest) = text.split_once(": sample_threshold: start ")?;
    let words: Vec<&str> = rest.split_whitespace().take(4).collect();
    let [start, "duration", duration, "ns"] = *words else { return None };
    let event = Event::Noise { start_ns: seconds_ns(start)?, duration_ns: duration.parse().ok()? };
    Some((head, event))
}

/// `#1     inner/outer(us):   11/12    ts:1581527483.343962693 count:6 nmi-total:0 nmi-count:1`
fn hardware(text: &str) -> Option<(&str, Event)> {
    let (head, rest) = text.rsplit_once(": #")?;
    let (seq, rest) = rest.split_once("inner/outer(us):")?;
    let (inner, rest) = rest.split_once('/')?;
    let outer = rest.split_whitespace().next()?;
    let number = |text: &str| text.trim().parse().ok();
    let (seq, inner_us, outer_us) = (number(seq)?, number(inner)?, number(outer)?);
    // Kernels name them only where there were some.
    let nmis = rest.split_once("nmi-count:").map_or(Some(0), |(_, count)| number(count))?;
    Some((head, Event::Hardware { seq, inner_us, outer_us, nmis }))
}

/// Seconds with up to nine decimals.
fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let digits = rest.len();
    if digits == 0 || digits > 9 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = rest.parse().ok()?;
    let fraction_ns = fraction * 10_u64.pow(9 - u32::try_from(digits).ok()?);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// Bytes as they come, to whole lines; what is too long for one is passed over.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    pub(super) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Line)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                if let Some(line) = line(String::from_utf8_lossy(&self.partial).trim_end()) {
                    take(line);
                }
                self.partial.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
          <idle>-0       [000] d.h1.    54.029328: #1     context    irq timer_latency       932 ns
           <...>-867     [000] .....    54.029339: #1     context thread timer_latency     11700 ns
  my [odd]: #9 x-12      [013] d....  1054.5: #77    context user-ret timer_latency    20000 ns
     osnoise/8-961     [008] d.h.  5789.857532: sample_threshold: start 5789.857529929 duration 1845 ns interference 2
           <...>-1729    [001] d...   678.473449: #3     inner/outer(us):   11/12    ts:1581527483.343962693 count:6
CPU:1 [LOST 38 EVENTS]
# tracer: timerlat
           <...>-859     [000] ....    81.637220: 1000000        190  99.98100          9       18     0      1007    18     1
";

    fn read(bytes: &[u8]) -> Vec<Line> {
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        // In pieces, as a pipe has it.
        bytes.chunks(7).for_each(|chunk| lines.feed(chunk, |line| got.push(line)));
        got
    }

    #[test]
    fn lines_of_the_documentation_are_read() {
        let timerlat = |cpu, at_ns, seq, context, latency_ns| Line {
            cpu,
            at_ns,
            event: Event::Timerlat { seq, context, latency_ns },
        };
        let noise = Event::Noise { start_ns: 5_789_857_529_929, duration_ns: 1845 };
        let hardware = Event::Hardware { seq: 3, inner_us: 11, outer_us: 12, nmis: 0 };
        let expected = [
            timerlat(0, 54_029_328_000, 1, Context::Irq, 932),
            timerlat(0, 54_029_339_000, 1, Context::Thread, 11_700),
            timerlat(13, 1_054_500_000_000, 77, Context::User, 20_000),
            Line { cpu: 8, at_ns: 5_789_857_532_000, event: noise },
            Line { cpu: 1, at_ns: 678_473_449_000, event: hardware },
            Line { cpu: 1, at_ns: 0, event: Event::Lost(38) },
        ];
        assert_eq!(read(TEXT.as_bytes()), expected);
    }

    #[test]
    fn what_is_no_line_is_passed_over() {
        for cut in 0..TEXT.len() {
            // Whatever is missing at the end of any line: nothing is made up, nothing panics.
            read(&TEXT.as_bytes()[cut..]);
            read(&TEXT.as_bytes()[..cut]);
        }
        for text in [
            "x-1 [000] d 1.0: #1 context irq timer_latency -5 ns",
            "x-1 [000] d 1.0: #1 context irq timer_latency 99999999999999999999 ns",
            "x-1 [0] d 99999999999999999999.0: #1 context irq timer_latency 1 ns",
            "x-1 000 d 1.0: #1 context irq timer_latency 1 ns",
            "x-1 [000] d 1.0000000001: #1 context irq timer_latency 1 ns",
            "CPU:x [LOST 1 EVENTS]",
        ] {
            assert_eq!(line(text), None, "{text}");
        }
        assert!(read(&[b'x'; 100_000]).is_empty());
        let mut long = vec![b'x'; 100_000];
        long.extend_from_slice(format!("\n{TEXT}").as_bytes());
        assert_eq!(read(&long).len(), 6);
    }
}
