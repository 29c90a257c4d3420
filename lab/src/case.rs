//! A case: what to boot, what to plant, what to run, what must come, and the mutations that must
//! make it fail.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use rtproof_guest::process::{Cue, GuestProcess};

use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::programs::Make;
use crate::seen::Evidence;

/// When a case is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Tier {
    /// In every `make test`: x86-64 alone, as building for another processor takes minutes.
    #[value(name = "1")]
    One,
    /// Extended: every kernel, topology and 64-bit processor, and all mutations.
    #[value(name = "2")]
    Two,
    /// The Debian image, noise and host-side faults.
    #[value(name = "3")]
    Three,
}

/// What is checked when the guests have ended.
pub type Check = Arc<dyn Fn(&Evidence, &mut Expect) -> Result<()> + Send + Sync>;
/// What a mutation does to its case.
pub type Change = Arc<dyn Fn(&mut Case) + Send + Sync>;

/// One boot of a case.
#[derive(Clone, Debug)]
pub struct Plan {
    pub machine: Machine,
    /// Causes planted before the script.
    pub plants: Vec<Plant>,
    /// Shell script; the functions of guest/prelude.sh are there.
    pub script: String,
    /// Whether the script's own end is expected; else the guest ends by itself (power off, panic).
    pub ends: bool,
}

impl Plan {
    const fn new(machine: Machine) -> Self {
        Self { machine, plants: Vec::new(), script: String::new(), ends: true }
    }
}

/// A Debian package with a kernel.
#[derive(Clone, Debug)]
pub enum KernelPackage {
    /// One of the lab's own kernels, by name.
    Pinned(&'static str),
    File(PathBuf),
}

#[derive(Clone)]
pub struct Case {
    /// `family/what/kernel`.
    pub name: String,
    /// What it shows, one sentence.
    pub shows: &'static str,
    pub tier: Tier,
    /// Boots, one after the other; those of the disk image share one disk.
    pub boots: Vec<Plan>,
    /// Debian packages' programs that go into the guest with their libraries, by name on the host.
    pub programs: Vec<&'static str>,
    /// Programs that are made on the host and go into the guest with their libraries, by name.
    pub made: Vec<(&'static str, Make)>,
    /// Debian package of a kernel that is shared, as /host/kernel.deb.
    pub kernel_package: Option<KernelPackage>,
    /// What the host does at which cue.
    pub cues: Vec<(String, Cue)>,
    /// Time that one boot may take.
    pub limit: Duration,
    pub check: Check,
    /// What must make it fail, and at which expectation.
    pub mutations: Vec<Mutation>,
}

/// A change after which an expectation must fail.
#[derive(Clone)]
pub struct Mutation {
    pub says: &'static str,
    /// Beginning of the name of an expectation that must fail.
    pub fails: &'static str,
    pub change: Change,
}

impl Case {
    /// A case of tier 2 with nothing planted.
    pub fn new(name: impl Into<String>, shows: &'static str, machine: Machine) -> Self {
        Self {
            name: name.into(),
            shows,
            tier: Tier::Two,
            boots: vec![Plan::new(machine)],
            programs: Vec::new(),
            made: Vec::new(),
            kernel_package: None,
            cues: Vec::new(),
            limit: Duration::from_secs(120),
            check: Arc::new(|_, _| Ok(())),
            mutations: Vec::new(),
        }
    }

    #[must_use]
    pub const fn tier(mut self, tier: Tier) -> Self {
        self.tier = tier;
        self
    }

    /// Plants a cause before the script of the last boot.
    #[must_use]
    pub fn plant(mut self, plant: Plant) -> Self {
        if let Some(boot) = self.boots.last_mut() {
            boot.plants.push(plant);
        }
        self
    }

    /// A further boot, of another machine.
    #[must_use]
    pub fn then_on(mut self, machine: Machine) -> Self {
        self.boots.push(Plan::new(machine));
        self
    }

    /// A further boot of the same machine.
    #[must_use]
    pub fn then_again(self) -> Self {
        match self.boots.last().map(|boot| boot.machine.clone()) {
            Some(machine) => self.then_on(machine),
            None => self,
        }
    }

    /// Takes a program of the host into the guest.
    #[must_use]
    pub fn program(mut self, name: &'static str) -> Self {
        self.programs.push(name);
        self
    }

    /// Makes a program on the host and takes it into the guest.
    #[must_use]
    pub fn made(mut self, name: &'static str, make: Make) -> Self {
        self.made.push((name, make));
        self
    }

    /// Shares the Debian package of a kernel of the lab, as /host/kernel.deb.
    #[must_use]
    pub fn kernel_package(mut self, package: KernelPackage) -> Self {
        self.kernel_package = Some(package);
        self
    }

    /// What the guest runs in the last boot.
    #[must_use]
    pub fn script(mut self, script: impl Into<String>) -> Self {
        if let Some(boot) = self.boots.last_mut() {
            boot.script = script.into();
        }
        self
    }

    /// Time that one boot may take, seconds.
    #[must_use]
    pub const fn limit_s(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// The guest of the last boot does not come to the end of its script.
    #[must_use]
    pub fn ends_by_itself(mut self) -> Self {
        if let Some(boot) = self.boots.last_mut() {
            boot.ends = false;
        }
        self
    }

    /// What the host does when the script says `cue NAME`.
    #[must_use]
    pub fn on(
        mut self,
        cue: &str,
        act: impl Fn(&GuestProcess) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.cues.push((cue.to_owned(), Arc::new(act)));
        self
    }

    #[must_use]
    pub fn expect(
        mut self,
        check: impl Fn(&Evidence, &mut Expect) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.check = Arc::new(check);
        self
    }

    /// What must make it fail, at the expectation whose name begins with `fails`.
    #[must_use]
    pub fn mutation(
        mut self,
        says: &'static str,
        fails: &'static str,
        change: impl Fn(&mut Self) + Send + Sync + 'static,
    ) -> Self {
        self.mutations.push(Mutation { says, fails, change: Arc::new(change) });
        self
    }

    /// A mutation that plants nothing.
    #[must_use]
    pub fn unplanted(self, fails: &'static str) -> Self {
        self.mutation("nothing is planted", fails, |case| {
            case.boots.iter_mut().for_each(|boot| boot.plants.clear());
        })
    }

    /// A mutation that boots another kernel.
    #[must_use]
    pub fn other_kernel(self, kernel: &'static str, fails: &'static str) -> Self {
        self.mutation("another kernel", fails, move |case| {
            case.boots.iter_mut().for_each(|boot| boot.machine.kernel = kernel);
        })
    }

    /// A mutation that boots with another command line.
    #[must_use]
    pub fn other_command_line(self, parameters: &'static str, fails: &'static str) -> Self {
        self.mutation("another command line", fails, move |case| {
            for boot in &mut case.boots {
                parameters.clone_into(&mut boot.machine.command_line);
            }
        })
    }

    /// A mutation that replaces a word of the scripts.
    #[must_use]
    pub fn other_word(self, word: &'static str, by: &'static str, fails: &'static str) -> Self {
        self.mutation("another script", fails, move |case| {
            for boot in &mut case.boots {
                boot.script = boot.script.replace(word, by);
            }
        })
    }

    /// Host threads that its hungriest guest keeps busy.
    pub fn host_threads(&self) -> u32 {
        self.boots.iter().map(|boot| boot.machine.host_threads()).max().unwrap_or(1)
    }
}
