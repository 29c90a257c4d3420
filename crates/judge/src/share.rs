//! The share of late wake-ups of each CPU, held against the twentieth that class 95 allows.

use rtproof_model::verdict::HeldShare;
use rtproof_record::Run;
use rtproof_stats::evidence::{self, MEMORY_MAX};

use crate::late::LateRows;

/// Share of late wake-ups that class 95 allows, and from which on a tenth of the run keeps every
/// class from accepting it.
pub(crate) const ALLOWED: f64 = 0.05;

/// Below such a share in every tenth it does not matter how they differ.
const NEGLIGIBLE: f64 = 0.01;

/// Fewest blocks whose dependence can be seen.
const BLOCKS_MIN: usize = 20;

/// Fewest blocks that can refuse where there are too few to see any.
const SHORT_MIN: usize = 10;

/// Stretches of late wake-ups that a block is to be longer than, by this factor.
const STRETCHES: u64 = 4;

/// What one CPU shows.
struct CpuShare {
    held: HeldShare,
    /// Late share of each block, of the length at which tenths differ no more than they explain, or
    /// of so few that can only refuse.
    shares: Vec<f64>,
    /// Whether stretches of late wake-ups are too long for the run to tell.
    is_too_dependent: bool,
    /// How many times as long as they would be without [`MEMORY_MAX`] blocks are.
    longer: f64,
    /// Shortest block that the rows allow.
    row_s: f64,
}

/// The CPUs of a run with the longest stretch of late wake-ups that was asked for, if one was.
pub(crate) struct Shares {
    cpus: Vec<CpuShare>,
    wanted: f64,
    stretch_ns: u64,
}

impl Shares {
    pub(crate) fn of(run: &Run) -> Self {
        let requirement = &run.options.requirement;
        let stretch_ns = requirement.episode_ns.unwrap_or(0);
        let of = |thread| {
            let rows = LateRows::of(run, thread);
            (rows.n > 0).then(|| CpuShare::of(thread.info.cpu, &rows, stretch_ns))
        };
        Self {
            // Of a CPU on which nothing was due nothing is shown, nor then of all.
            cpus: run.threads.iter().map(of).collect::<Option<_>>().unwrap_or_default(),
            wanted: 1e6 / f64::from(1_000_000 - requirement.confidence_ppm.min(999_999)),
            stretch_ns,
        }
    }

    /// The CPU that shows least, with the worst tenth of all.
    pub(crate) fn held(&self) -> Option<HeldShare> {
        let least = |cpu: &&CpuShare| evidence::below(&cpu.shares, ALLOWED);
        let least = self.cpus.iter().min_by(|a, b| least(a).total_cmp(&least(b)))?;
        let worst =
            self.cpus.iter().max_by(|a, b| a.held.worst_tenth.total_cmp(&b.held.worst_tenth))?;
        let HeldShare { worst_tenth, worst_tenth_from_ns, worst_tenth_to_ns, .. } = worst.held;
        Some(HeldShare { worst_tenth, worst_tenth_from_ns, worst_tenth_to_ns, ..least.held })
    }

    /// The largest share of a CPU over the run.
    pub(crate) fn largest(&self) -> f64 {
        let share = |cpu: &CpuShare| cpu.held.late as f64 / cpu.held.of.max(1) as f64;
        self.cpus.iter().map(share).fold(0.0, f64::max)
    }

    /// Whether a tenth of the run had too many for any class.
    pub(crate) fn is_gated(&self) -> bool {
        self.cpus.is_empty() || self.cpus.iter().any(|cpu| cpu.held.worst_tenth >= ALLOWED)
    }

    /// Whether stretches of late wake-ups are too long for the run to tell.
    pub(crate) fn is_too_dependent(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.is_too_dependent)
    }

    /// Whether each CPU is shown to be late less often than allowed.
    pub(crate) fn is_below(&self) -> bool {
        let shown = |cpu: &CpuShare| {
            cpu.shares.len() >= BLOCKS_MIN && evidence::below(&cpu.shares, ALLOWED) >= self.wanted
        };
        !self.is_gated() && self.cpus.iter().all(shown)
    }

    /// Whether one of them is shown to be late more often.
    pub(crate) fn is_above(&self) -> bool {
        let capital = |cpu: &CpuShare| match cpu.shares.len() {
            ..SHORT_MIN => 0.0,
            _ => evidence::above(&cpu.shares, ALLOWED),
        };
        let sum: f64 = self.cpus.iter().map(capital).sum();
        self.largest() > ALLOWED && sum / self.cpus.len() as f64 >= self.wanted
    }

    /// Time under load that would show it if the run went on like this; `None`: more of the same
    /// does not help.
    pub(crate) fn needed_ns(&self) -> Option<u64> {
        if self.is_gated() || self.is_too_dependent() {
            return None;
        }
        let of = |cpu: &CpuShare| {
            let blocks = evidence::blocks_needed(&cpu.shares, ALLOWED, self.wanted)?;
            let blocks = blocks.ceil().max(BLOCKS_MIN as f64);
            let blocks_before = blocks * cpu.longer;
            let seconds = (blocks_before.powi(2) / 30.0).max(blocks_before * cpu.row_s);
            // Of blocks without a wake-up there is nothing.
            let filled = cpu.shares.len() as f64 / cpu.held.blocks.max(1) as f64;
            let seconds = if filled < 1.0 { seconds / filled.max(1e-9).powi(2) } else { seconds };
            let stretches_s = blocks * self.stretch_ns.saturating_mul(STRETCHES) as f64 / 1e9;
            // One more for the rows of a run, which do not end with a block.
            Some(((seconds.max(stretches_s) + 1.0) * 1e9) as u64)
        };
        self.cpus.iter().map(of).reduce(|a, b| Some(a?.max(b?)))?
    }
}

/// Time under load that class 95 takes, if nothing is late.
pub(crate) fn needed_ns(confidence: f64, stretch_ns: Option<u64>) -> u64 {
    let blocks = evidence::blocks_needed(&[0.0], ALLOWED, 1.0 / (1.0 - confidence));
    let blocks = blocks.unwrap_or(0.0).ceil().max(BLOCKS_MIN as f64);
    let stretches_s = blocks * stretch_ns.unwrap_or(0).saturating_mul(STRETCHES) as f64 / 1e9;
    ((blocks * blocks / 30.0).max(stretches_s) * 1e9) as u64
}

impl CpuShare {
    fn of(cpu: u32, rows: &LateRows<'_>, stretch_ns: u64) -> Self {
        let (worst_tenth, worst_tenth_from_ns, worst_tenth_to_ns) =
            rows.worst_tenth().unwrap_or_default();
        let seconds = rows.length_ns as f64 / 1e9;
        let by_stretch = rows.length_ns.checked_div(stretch_ns.saturating_mul(STRETCHES));
        let most = evidence::blocks_of(seconds)
            .min(rows.blocks_max())
            .min(by_stretch.map_or(usize::MAX, |count| count as usize));
        let shares_of = |count: usize| -> Vec<f64> {
            let parts = rows.parts(count, false);
            parts.into_iter().filter(|part| part.n > 0.0).map(|part| part.share()).collect()
        };
        let (mut count, mut shares) = (most, shares_of(most));
        let mut memory_ratio = evidence::memory_ratio(&shares);
        // A short run is not asked, nor one in which it does not matter.
        if worst_tenth >= NEGLIGIBLE && most >= BLOCKS_MIN {
            while memory_ratio > MEMORY_MAX && count >= BLOCKS_MIN {
                count /= 2;
                shares = shares_of(count);
                if count >= BLOCKS_MIN {
                    memory_ratio = evidence::memory_ratio(&shares);
                }
            }
        }
        let is_too_dependent = count < BLOCKS_MIN && count < most;
        let block_ns = rows.length_ns / count.max(1) as u64;
        Self {
            held: HeldShare {
                cpu,
                late: rows.late,
                of: rows.n,
                worst_tenth,
                worst_tenth_from_ns,
                worst_tenth_to_ns,
                blocks: count as u64,
                block_ns,
                memory_ratio,
                holds_for_ns: block_ns / STRETCHES,
            },
            shares,
            is_too_dependent,
            longer: most as f64 / count.max(1) as f64,
            row_s: seconds / rows.blocks_max().max(1) as f64,
        }
    }
}
