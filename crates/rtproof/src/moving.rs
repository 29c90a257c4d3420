//! Lengths of moving statistics on the command line, of `report` and `export`.

use rtproof_run::parse;
use rtproof_stats::moving::Lengths;

/// Options.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct MovingArgs {
    /// Show moving statistics of windows of this length, e.g. 10s; default: a tenth of the run
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub moving: Option<u64>,

    /// Age at which a sample counts half in the exponential ones; default: half of the window
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub half_life: Option<u64>,
}

impl MovingArgs {
    /// What is asked for.
    pub(crate) const fn lengths(self) -> Lengths {
        Lengths { window_ns: self.moving, half_life_ns: self.half_life }
    }
}
