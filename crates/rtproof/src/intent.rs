//! Options that say what the machine is for.

use rtproof_run::intent::Requested;

/// Arguments that `check` and `prove` share.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct IntentArgs {
    /// What the machine is for: periodic, busy-poll, audio, rt-vm-host, rt-vm-guest,
    /// container-host, or a file (docs/profiles.md). Default: periodic
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,

    /// Skip a check, with the reason: --skip ipv6="the fieldbus needs it"; repeatable
    #[arg(long, value_name = "ID=REASON")]
    pub skip: Vec<String>,
}

impl IntentArgs {
    pub fn requested(&self) -> Requested {
        Requested { profile: self.profile.clone(), skip: self.skip.clone() }
    }
}
