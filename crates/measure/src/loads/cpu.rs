//! Loads of CPU and memory: computing, memory traffic, processes, messages, a compiler; and none.

use std::{
    hint::black_box,
    io::ErrorKind,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use rtproof_host::trusted;

use super::{Load, LoadContext};
use crate::{Failure, apart};

// Keeps every load CPU busy with integer and floating-point work. Brings out what depends on a
// busy machine: preemption of a running task, floating-point state to save, shared execution units
// of a sibling thread, clock and power limits of the package. Touches next to no memory.

/// Operations between two looks at the stop flag: some tens of microseconds.
const CPU_BATCH: u64 = 10_000;

/// One spinning thread on each load CPU.
pub(super) const CPU: Load = Load {
    name: "cpu",
    about: "One thread on each load CPU spins on integer and floating-point arithmetic",
    unit: "operations",
    parameter: None,
    prepare: None,
    work: work_cpu,
};

fn work_cpu(ctx: &LoadContext) -> Result<(), Failure> {
    let plural = if ctx.before.cpus.len() == 1 { "" } else { "s" };
    (ctx.detail)(&format!("{} spinning thread{plural}", ctx.before.cpus.len()));
    ctx.on_each_cpu(|cpu| {
        let (mut integer, mut real) = (u64::from(cpu), 1.0);
        while !ctx.stopped() {
            (integer, real) = black_box(spin(integer, real));
            ctx.counter.add(CPU_BATCH);
        }
        Ok(())
    })
}

/// One batch. Each operation is one multiply-rotate on integers and one square root on reals; both
/// chains depend on themselves only, so that a CPU overlaps them. `real` tends to 2.
fn spin(mut integer: u64, mut real: f64) -> (u64, f64) {
    for _ in 0..CPU_BATCH {
        integer = (integer ^ 0x9e37_79b9).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(23);
        real = (real * 1.5 + 1.0).sqrt();
    }
    (integer, real)
}

// Compiles, as building a kernel does: on each load CPU one compiler after the other reads many
// small headers, after looking for each in folders that do not have it, and writes an object.
// Brings out fork, exec and exit of large processes with their page tables and page faults, the
// page cache, path lookup, and memory traffic.
//
// Where there is no `cc` that belongs to root (within a user namespace nothing is seen to) the
// worker looks for, reads and writes the same files, and its own no-op is the compiler's process.
//
// Bounded: one compiler at a time on each load CPU; its files are in a file system in memory that
// only the worker and its processes see.

/// Folders of headers, in the order in which they are searched.
const FOLDERS: usize = 8;

const HEADERS: usize = 16;

/// Functions in each header.
const FUNCTIONS: usize = 8;

/// Most that the file system in memory holds.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// One compiler on each load CPU.
pub(super) const COMPILE: Load = Load {
    name: "compile",
    about: "Compiles a file with 128 small headers over and over, one compiler at a time on each \
            load CPU (cc, else its own no-op). Its file system is in memory, and only it sees it",
    unit: "compilations",
    parameter: None,
    prepare: Some(|before| Ok(apart::folder(before.dir, MEMORY_BYTES_MAX)?.0)),
    work: work_compile,
};

fn work_compile(ctx: &LoadContext) -> Result<(), Failure> {
    let compiler = trusted::find_program("cc").ok();
    let what = match &compiler {
        Some(path) => format!("{} -O1", path.display()),
        None => "no cc that belongs to root: reading and a no-op process".to_owned(),
    };
    let dir = std::path::absolute(ctx.before.dir)?;
    (ctx.detail)(&format!(
        "{what}, {} headers, one at a time on CPU {}, in a tmpfs over {}",
        FOLDERS * HEADERS,
        ctx.before.cpus,
        dir.display()
    ));
    make_sources(&dir)?;
    ctx.on_each_cpu(|cpu| {
        let object = dir.join(format!("unit-{cpu}.o"));
        while !ctx.stopped() {
            let mut command = match &compiler {
                Some(compiler) => cc(ctx, compiler, &dir, &object),
                None => by_itself(ctx, &dir, &object)?,
            };
            let output = command.output().map_err(|error| {
                format!("cannot start a process: {error}; raise `ulimit -u` or pids.max")
            })?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr);
                let first: String = text.chars().take(300).collect();
                return Err(Failure(format!("the compiler ended with {}: {first}", output.status)));
            }
            ctx.counter.add(1);
        }
        Ok(())
    })
}

fn cc(ctx: &LoadContext, compiler: &Path, dir: &Path, object: &Path) -> Command {
    let mut command = (ctx.program)(compiler);
    for folder in 0..FOLDERS {
        command.arg("-I").arg(dir.join(format!("include{folder}")));
    }
    command.args(["-O1", "-w", "-c"]).arg(dir.join("unit.c")).arg("-o").arg(object);
    // What it makes between its parts goes where all goes.
    command.env("TMPDIR", dir).stdin(Stdio::null());
    command
}

/// File accesses and process of a compiler.
fn by_itself(ctx: &LoadContext, dir: &Path, object: &Path) -> Result<Command, Failure> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error: rustix::io::Errno| Failure(format!("{path}: {error}"))
    };
    let mut buffer = [0; 4096];
    for (folder, header) in headers() {
        // Looked for in the folders before its own, as by -I.
        for before in 0..folder {
            let _ = rustix::fs::statat(CWD, place(dir, before, folder, header), AtFlags::empty());
        }
        let path = place(dir, folder, folder, header);
        let file = rustix::fs::openat(CWD, &path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(at(&path))?;
        while rustix::io::read(&file, &mut buffer).map_err(at(&path))? > 0 {}
    }
    write(object, &buffer)?;
    Ok((ctx.no_op)())
}

fn headers() -> impl Iterator<Item = (usize, usize)> {
    (0..FOLDERS).flat_map(|folder| (0..HEADERS).map(move |header| (folder, header)))
}

/// Where the header of a folder would be in another.
fn place(dir: &Path, within: usize, folder: usize, header: usize) -> PathBuf {
    dir.join(format!("include{within}")).join(format!("part{folder}_{header}.h"))
}

fn make_sources(dir: &Path) -> Result<(), Failure> {
    for folder in 0..FOLDERS {
        let path = dir.join(format!("include{folder}"));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut unit = String::new();
    for (folder, header) in headers() {
        let part = format!("{folder}_{header}");
        unit += &format!("#include \"part{part}.h\"\n");
        let function = |n: usize| {
            format!(
                "static int work{part}_{n}(int *a, int n)\n{{\n\tint sum = {n};\n\tfor (int i = 0; \
                 i < n; i++)\n\t\tsum += a[i] * {n} ^ (sum >> 3);\n\treturn sum;\n}}\n"
            )
        };
        let text: String = (0..FUNCTIONS).map(function).collect();
        write(&place(dir, folder, folder, header), text.as_bytes())?;
    }
    unit += "int all(int *a, int n)\n{\n\tint sum = 0;\n";
    for (folder, header) in headers() {
        unit += &format!("\tsum += work{folder}_{header}_0(a, n);\n");
    }
    unit += "\treturn sum;\n}\n";
    write(&dir.join("unit.c"), unit.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "this load's own files")]
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Starts and reaps processes as fast as it can. Brings out what process creation does to others:
/// page-table work, RCU callbacks, run-queue locks, wake-ups on other CPUs, inter-processor
/// interrupts for text that is mapped and unmapped, exit work.
///
/// Bounded: one process at a time on each load CPU, each of them this binary's own no-op.
pub(super) const FORK: Load = Load {
    name: "fork",
    about: "Starts and reaps short processes, one at a time on each load CPU",
    unit: "processes",
    parameter: None,
    prepare: None,
    work: work_fork,
};

fn work_fork(ctx: &LoadContext) -> Result<(), Failure> {
    let cpus = match ctx.before.cpus.len() {
        1 => "1 CPU".into(),
        several => format!("each of {several} CPUs"),
    };
    (ctx.detail)(&format!("1 process at a time on {cpus}"));
    ctx.on_each_cpu(|_| {
        let mut command = (ctx.no_op)();
        while !ctx.stopped() {
            start_and_reap(&mut command)?;
            ctx.counter.add(1);
        }
        Ok(())
    })
}

fn start_and_reap(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| {
        format!("cannot start a process: {error}; raise `ulimit -u` or the cgroup's pids.max")
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure(format!("its no-op process ended with {status}, exit status 0 was expected")))
    }
}

// The absence of a load, by name: the first phase of a run shows what the machine does when left
// alone, and `idle` says so in the record where an empty list would leave it open.

/// Its name, which the runner and the specification look for.
pub(super) const NAME: &str = "idle";

/// Nothing. The runner starts no process for it.
pub(super) const IDLE: Load = Load {
    name: NAME,
    about: "No load: no process is started (also written `none`)",
    unit: "operations",
    parameter: None,
    prepare: None,
    work: |_| Ok(()),
};

// Reads, writes and copies memory beyond the last-level cache. Brings out what a shared memory
// system costs: evicted cache lines and TLB entries, a full memory bus, prefetchers at work; where
// cache allocation (resctrl) or memory bandwidth is to be partitioned, this load shows it.
//
// Bounded: all blocks together take at most a quarter of the memory that is available.

/// Smallest block that is aimed at, in bytes.
const AIM_BYTES_MIN: u64 = 64 << 20;

/// Largest block, in bytes.
const BLOCK_BYTES_MAX: u64 = 256 << 20;

/// A block smaller than this is in a cache of any machine and no load.
const BLOCK_BYTES_MIN: u64 = 1 << 20;

/// All blocks together: the available memory divided by this.
const AVAILABLE_SHARE: u64 = 4;

/// Random accesses between two copies.
const ACCESSES: u64 = 4096;

/// What an access moves, in bytes: a cache line (64 nearly everywhere; some Arm cores have 128).
const LINE_BYTES: u64 = 64;

/// Largest copy, in bytes.
const COPY_BYTES_MAX: usize = 1 << 20;

const WORD_BYTES: usize = size_of::<u64>();

/// Block for each of `cpus` CPUs, in bytes: four times the last-level cache but at least 64 MiB and
/// at most 256 MiB, and all of them together at most a quarter of the available memory.
pub(super) fn bytes_per_cpu(llc_bytes: u64, available_bytes: u64, cpus: usize) -> u64 {
    let aim = llc_bytes.saturating_mul(4).clamp(AIM_BYTES_MIN, BLOCK_BYTES_MAX);
    aim.min(available_bytes / AVAILABLE_SHARE / cpus.max(1) as u64)
}

/// One block and one thread on each load CPU.
pub(super) const MEMORY: Load = Load {
    name: "memory",
    about: "Random reads and writes and copies in a block beyond the last-level cache on each load \
         CPU. At most 256 MiB each, and a quarter of the available memory in all",
    unit: "bytes",
    parameter: None,
    prepare: None,
    work: work_memory,
};

fn work_memory(ctx: &LoadContext) -> Result<(), Failure> {
    let bytes = ctx.memory_bytes_per_cpu;
    if bytes < BLOCK_BYTES_MIN {
        return Err(Failure(format!(
            "a quarter of the available memory is {bytes} bytes for each of {} CPUs, and at \
             least {BLOCK_BYTES_MIN} are needed: free memory, or use fewer load CPUs",
            ctx.before.cpus.len()
        )));
    }
    let words = usize::try_from(bytes).map_err(|error| error.to_string())? / WORD_BYTES;
    (ctx.detail)(&format!("{} x {} MiB blocks", ctx.before.cpus.len(), bytes >> 20));
    ctx.on_each_cpu(|cpu| {
        if let Some(mut block) = touched(words, ctx) {
            thrash(&mut block, &mut XorShift::new(cpu.into()), ctx);
            black_box(block);
        }
        Ok(())
    })
}

/// A block of which every page is there; `None` when stopped meanwhile.
fn touched(words: usize, ctx: &LoadContext) -> Option<Vec<u64>> {
    let mut block = Vec::with_capacity(words);
    while block.len() < words {
        if ctx.stopped() {
            return None;
        }
        let more = (words - block.len()).min(COPY_BYTES_MAX / WORD_BYTES);
        block.resize(block.len() + more, 1);
        ctx.counter.add((more * WORD_BYTES) as u64);
    }
    Some(block)
}

/// Random accesses and copies until stopped.
fn thrash(block: &mut [u64], rng: &mut XorShift, ctx: &LoadContext) {
    let words = block.len() as u64;
    let copy = (block.len() / 4).min(COPY_BYTES_MAX / WORD_BYTES);
    let index = |number: u64| usize::try_from(number).unwrap_or(0);
    while !ctx.stopped() {
        let mut sum = 0u64;
        for access in 0..ACCESSES {
            let word = &mut block[index(rng.below(words))];
            sum = sum.wrapping_add(*word);
            if access % 2 == 0 {
                *word = sum;
            }
        }
        let from = index(rng.below(words - copy as u64));
        let to = index(rng.below(words - copy as u64));
        block.copy_within(from..from + copy, to);
        ctx.counter.add(ACCESSES * LINE_BYTES + 2 * (copy * WORD_BYTES) as u64);
        black_box(sum);
    }
}

// A storm of short messages between many threads, as hackbench makes it. Brings out the scheduler:
// wake-ups by the hundred thousand, run queues with many tasks, migrations, locks of sockets, and
// interrupts between processors.
//
// Bounded: one group of `SENDERS` senders and as many receivers for each load CPU, at most
// `GROUPS_MAX` groups; the threads run on any of the load CPUs.

/// Senders of a group, and receivers.
const SENDERS: usize = 10;

const GROUPS_MAX: usize = 8;

/// Size of a message in bytes, as of hackbench.
const MESSAGE_BYTES: usize = 100;

/// A call that waits looks at the stop flag this often.
const WAIT: Duration = Duration::from_millis(50);

/// Messages between two counts.
const MESSAGE_BATCH: u64 = 64;

type Task<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;

/// Groups of senders and receivers.
pub(super) const MESSAGES: Load = Load {
    name: "messages",
    about: "A storm of messages of 100 bytes through Unix sockets, as of hackbench. Each load \
            CPU, at most 8, has a group of 10 senders that write to each of 10 receivers",
    unit: "messages",
    parameter: None,
    prepare: None,
    work: work_messages,
};

fn work_messages(ctx: &LoadContext) -> Result<(), Failure> {
    let groups = ctx.before.cpus.len().clamp(1, GROUPS_MAX);
    let mut tasks: Vec<Task> = Vec::new();
    for _ in 0..groups {
        let mut to = Vec::new();
        for _ in 0..SENDERS {
            let (sender, receiver) = pair().map_err(|error| {
                format!("cannot make a pair of sockets: {error}; raise `ulimit -n`")
            })?;
            to.push(sender);
            tasks.push(Box::new(move || receive(&receiver, ctx)));
        }
        let to = Arc::new(to);
        for _ in 0..SENDERS {
            let to = Arc::clone(&to);
            tasks.push(Box::new(move || send(&to, ctx)));
        }
    }
    (ctx.detail)(&format!("{groups} x ({SENDERS} senders, {SENDERS} receivers)"));
    ctx.together(tasks)
}

fn pair() -> std::io::Result<(UnixDatagram, UnixDatagram)> {
    let (sender, receiver) = UnixDatagram::pair()?;
    sender.set_write_timeout(Some(WAIT))?;
    receiver.set_read_timeout(Some(WAIT))?;
    Ok((sender, receiver))
}

fn send(to: &[UnixDatagram], ctx: &LoadContext) -> Result<(), Failure> {
    let message = [0x5a; MESSAGE_BYTES];
    for socket in to.iter().cycle() {
        if ctx.stopped() {
            break;
        }
        match socket.send(&message) {
            Ok(_) => {}
            // Its queue is full, or its receiver has ended because all do.
            Err(error) if is_passing(&error) || ctx.stopped() => {}
            Err(error) => return Err(format!("cannot send a message: {error}").into()),
        }
    }
    Ok(())
}

fn receive(socket: &UnixDatagram, ctx: &LoadContext) -> Result<(), Failure> {
    let mut buffer = [0; MESSAGE_BYTES];
    let mut received = 0;
    while !ctx.stopped() {
        match socket.recv(&mut buffer) {
            Ok(_) => received += 1,
            Err(error) if is_passing(&error) || ctx.stopped() => {}
            Err(error) => return Err(format!("cannot receive a message: {error}").into()),
        }
        if received == MESSAGE_BATCH {
            ctx.counter.add(received);
            received = 0;
        }
    }
    ctx.counter.add(received);
    Ok(())
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

// Cheap random numbers for the loads: a few cycles each, so that the memory and the disk are the
// load and not the generator. Nothing measured depends on them.

/// Marsaglia's xorshift64*: <https://www.jstatsoft.org/article/view/v008i14>.
pub(super) struct XorShift(u64);

impl XorShift {
    /// A generator; each `seed` gives its own sequence.
    pub(super) fn new(seed: u64) -> Self {
        // The state must not be zero; the golden ratio spreads small seeds.
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is at least 1 and at most 2^32.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        debug_assert!((1..=1 << 32).contains(&end));
        ((self.next() >> 32) * end) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_stay_finite_and_normal() {
        let (mut integer, mut real) = (0, 1.0);
        for _ in 0..10 {
            (integer, real) = spin(integer, real);
            assert!(real > 1.0 && real < 3.0, "{real}");
        }
        assert_ne!(integer, 0);
    }
}

#[cfg(test)]
mod compile_tests {
    use super::*;

    #[test]
    fn headers_are_found_in_their_own_folder_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        make_sources(dir.path()).expect("sources");
        assert_eq!(headers().count(), FOLDERS * HEADERS);
        for (folder, header) in headers() {
            for within in 0..FOLDERS {
                let path = place(dir.path(), within, folder, header);
                assert_eq!(path.is_file(), within == folder, "{}", path.display());
            }
        }
        assert!(make_sources(dir.path()).is_err(), "they are there");
    }
}

#[cfg(test)]
mod memory_tests {
    use super::*;

    #[test]
    fn blocks_are_beyond_the_cache_and_within_the_budget() {
        const GIB: u64 = 1 << 30;
        assert_eq!(bytes_per_cpu(1 << 20, 8 * GIB, 4), AIM_BYTES_MIN);
        assert_eq!(bytes_per_cpu(32 << 20, 8 * GIB, 4), 128 << 20);
        assert_eq!(bytes_per_cpu(512 << 20, 64 * GIB, 4), BLOCK_BYTES_MAX);
        assert_eq!(bytes_per_cpu(32 << 20, GIB, 4), 64 << 20);
        assert_eq!(bytes_per_cpu(u64::MAX, 256 << 20, 64), 1 << 20);
        assert_eq!(bytes_per_cpu(32 << 20, 0, 4), 0);
        assert!(BLOCK_BYTES_MAX / WORD_BYTES as u64 <= 1 << 32, "what the generator reaches");
    }
}

#[cfg(test)]
mod rng_tests {
    use super::*;

    #[test]
    fn numbers_stay_below_the_end_and_reach_all() {
        let mut rng = XorShift::new(0);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[usize::try_from(rng.below(10)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(XorShift::new(7).below(1), 0);
        assert_ne!(XorShift::new(1).next(), XorShift::new(2).next());
    }
}
