//! `lab-plant`: plants one cause of latency inside a lab guest, for a bounded time, and writes down
//! what it really did.
//!
//! One static program for every guest: it needs no library, no /sys, no shell. A copy named
//! `multipathd` is the rogue daemon: the kernel shows that name.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program talks to its caller")]

use std::process::ExitCode;

mod args;
mod cgroup;
mod clock;
mod failure;
mod files;
mod measuring;
mod occurrences;
mod plants;
mod policy;
mod run;
mod truth;

use args::Args;
use failure::Failure;

const HELP: &str = "\
lab-plant PLANT [OPTIONS]: plants a cause of latency, for a bounded time.

Plants:
  burst        busy for --busy D in every --every D (a hog when they are equal)
  throttle     a FIFO hog that provokes real-time throttling (default --policy fifo:10)
  softirq      UDP flood over loopback
  irq          a timer interrupt every --every D
  memory       allocates --bytes N, touches each page, gives it back, again and again
  fork         starts and reaps a process, again and again
  clock-step   steps the wall clock --by [-]D, and back at the end
  fill-disk    fills --dir DIR but for --leave N bytes; empties it again at the end
  offline      takes --cpu N off for --down D, --times N, every --every D
  quota        lives, spinning, under --quota US of each --of US in --cgroup DIR; with --pid N puts
               that process there and back
  module       lets the kernel module do --kind irqsoff|preemptoff|hardirq|softirq|irqwork|smi|
               ipi|nmi|kworker|irqthread|frequency|idleexit, --busy D every --every D, --times N
  boost        holds a lock for --busy D that a FIFO 90 thread waits for: its priority is inherited
  cycle        an application: works --busy D every --every D, each --each N-th time --long D; with
               --bytes N it touches fresh memory then instead
  move         an application that is moved to another CPU every --every D, kept waiting there
               for --busy D, and moved back
  deliver      one datagram to --count N sockets every --every D: a long soft interrupt
  expire       --count N timers that expire in the same instant, every --every D
  purge        closes a socket with --count N messages every --every D: a long stretch of kernel
               code, in which kernels without preemption do not switch
  stop         SIGSTOP for --busy D every --every D, for --pid N or the measuring rtproof
  wait-for     waits until `rtproof prove` is measuring, then --after D

Options of all:
  --for D           how long (default 5s, longest 120s)
  --truth FILE      append one line of JSON: what was really done, CLOCK_MONOTONIC nanoseconds
  --when-measuring  wait until `rtproof prove` is measuring
  --limit D         give up that wait after this long (default 300s)
  --after D         begin so long after that, or after the start
  --gap D           burst, throttle: longer between two looks at the clock is a gap (default 1ms)
  --phase D         begin when CLOCK_MONOTONIC is this much after a multiple of --every
  --cpu N           run there (offline: the CPU to take off)
  --policy P        other, fifo:N, rr:N (default other)
  --cgroup DIR      join this group first; it is made
  --memory-max N, --memory-high N   limits of that group

Durations have units: 250us, 3ms, 5s. Bytes may: 64k, 16m.
Exit: 0 done, 1 failed, 3 `rtproof prove` did not come to measure, 64 usage.

Example: multipathd burst --busy 5ms --every 1s --policy rr:99 --cpu 0 --for 10s --truth /tmp/t
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let plant = words.next().unwrap_or_default();
    if plant.is_empty() || plant == "--help" || plant == "-h" {
        print!("{HELP}");
        return ExitCode::from(if plant.is_empty() { 64 } else { 0 });
    }
    let result = Args::parse(words).map_err(Failure::Usage).and_then(|args| {
        if args.has("help") {
            print!("{HELP}");
            return Ok(());
        }
        plants::run(&plant, &args)
    });
    let (code, text) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => (64, format!("{text}; see lab-plant --help")),
        Err(Failure::NotMeasuring(text)) => (3, text),
        Err(Failure::Other(text)) => (1, text),
    };
    eprintln!("lab-plant {plant}: {text}");
    ExitCode::from(code)
}
