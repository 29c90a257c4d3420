//! Reads, writes and copies memory beyond the last-level cache. Brings out what a shared memory
//! system costs: evicted cache lines and TLB entries, a full memory bus, prefetchers at work; where
//! cache allocation (resctrl) or memory bandwidth is to be partitioned, this load shows it.
//!
//! Bounded: all blocks together take at most a quarter of the memory that is available.

use std::hint::black_box;

use super::super::load::{Context, Load};
use super::rng::XorShift;
use crate::failure::Failure;

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
pub(in super::super) fn bytes_per_cpu(llc_bytes: u64, available_bytes: u64, cpus: usize) -> u64 {
    let aim = llc_bytes.saturating_mul(4).clamp(AIM_BYTES_MIN, BLOCK_BYTES_MAX);
    aim.min(available_bytes / AVAILABLE_SHARE / cpus.max(1) as u64)
}

/// One block and one thread on each load CPU.
pub(super) const LOAD: Load = Load {
    name: "memory",
    about: "Random reads and writes and copies in a block beyond the last-level cache on each load \
         CPU. At most 256 MiB each, and a quarter of the available memory in all",
    unit: "bytes",
    parameter: None,
    prepare: None,
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
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
fn touched(words: usize, ctx: &Context) -> Option<Vec<u64>> {
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
fn thrash(block: &mut [u64], rng: &mut XorShift, ctx: &Context) {
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

#[cfg(test)]
mod tests {
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
