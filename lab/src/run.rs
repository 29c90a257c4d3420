//! Runs one case (or one mutation of it): prepares what it needs, boots its guests one after the
//! other, checks what came back.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use anyhow::{Context, Result, bail};
use rtproof_guest::{
    Arch, Emulator,
    process::{
        self, Cue, GuestEnding, GuestOutcome, NEVER, NotReady, SPEAK_LIMIT, SPEAK_LIMIT_DISK, Spec,
        tail_of,
    },
};

use crate::binaries::Binaries;
use crate::cache::{Cache, Lock};
use crate::case::{Case, KernelPackage, Plan};
use crate::expect::{Expect, Failure};
use crate::kernels::Kernel;
use crate::machine::{Machine, Share, share_of};
use crate::plants::Plant;
use crate::seen::{Boot, Evidence};
use crate::{disk, initramfs, kernels, machine, module, programs, snapshot, state};

/// What runs before every script.
pub(crate) const PRELUDE: &str = include_str!("../guest/prelude.sh");

/// What all cases share.
#[derive(Debug)]
pub struct Bench {
    pub cache: Cache,
    /// Folder of the runs: `target/lab`.
    pub dir: PathBuf,
    /// Programs for x86-64 guests, which also run here.
    native: Binaries,
    /// Programs for guests of other processors, built when the first case asks.
    crossed: Mutex<HashMap<Arch, Binaries>>,
}

/// Disks that the boots of a case share.
#[derive(Clone, Copy)]
struct Disks<'a> {
    image: Option<&'a (disk::Image, PathBuf)>,
    store: Option<&'a Path>,
}

/// How a case went.
#[derive(Clone, Debug)]
pub struct Report {
    /// Expectations that were checked.
    pub asked: usize,
    /// Those that did not hold.
    pub failures: Vec<Failure>,
    /// Guests that had to be started a second time because init never spoke.
    pub retries: u32,
    pub planted: Vec<serde_json::Value>,
    /// Lines that the plants wrote down.
    pub truth: Vec<String>,
    /// The end of the last console.
    pub console: String,
}

impl Bench {
    /// Opens the cache and builds the programs for x86-64, or takes them from a folder.
    ///
    /// # Errors
    /// A program cannot be built.
    pub fn open(dir: PathBuf, programs: Option<&Path>) -> Result<Self> {
        let cache = Cache::open()?;
        let native = match programs {
            Some(folder) => Binaries::given(folder, &dir.join("programs"))?,
            None => Binaries::build(Arch::X86_64, &cache)?,
        };
        fs::create_dir_all(&dir).with_context(|| format!("{}: make", dir.display()))?;
        Ok(Self { cache, dir, native, crossed: Mutex::default() })
    }

    /// Static programs for guests of an architecture.
    ///
    /// # Errors
    /// They cannot be built.
    pub fn binaries(&self, arch: Arch) -> Result<Binaries> {
        if arch == Arch::X86_64 {
            return Ok(self.native.clone());
        }
        let mut built = match self.crossed.lock() {
            Ok(built) => built,
            Err(_) => bail!("building for {} failed before", arch.name()),
        };
        if let Some(binaries) = built.get(&arch) {
            return Ok(binaries.clone());
        }
        let binaries = Binaries::build(arch, &self.cache)?;
        Ok(built.entry(arch).or_insert(binaries).clone())
    }

    /// Runs a case in its own folder, which stays. Another lab of this tree that runs the same case
    /// waits.
    ///
    /// # Errors
    /// The case cannot be run at all: packages, QEMU, a guest that twice never spoke.
    pub fn run(&self, case: &Case, folder: &str) -> Result<Report> {
        let _lock = Lock::wait(&self.dir.join(format!(".{folder}.lock")))?;
        let dir = self.dir.join(folder);
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("{}: remove", dir.display()))?;
        }
        fs::create_dir_all(&dir).with_context(|| format!("{}: make", dir.display()))?;
        let mut retries = 0;
        let boots = self.boots(case, &dir, &mut retries)?;
        let console = boots.last().map(|boot| tail_of(&boot.console)).unwrap_or_default();
        let mut release = String::new();
        for plan in case.boots.iter().filter(|plan| !plan.machine.boot.has_disk()) {
            release = plan.machine.kernel_row()?.ready(&self.cache)?.release;
        }
        let reports = self.dir.join("reports");
        let seen = Evidence::new(boots, self.native.rtproof.clone(), release, reports);
        let mut expect = Expect::default();
        check_endings(case, &seen, &mut expect);
        check_plants(case, &seen, &mut expect)?;
        if let Err(error) = (case.check)(&seen, &mut expect) {
            expect.impossible("reading the results", &error);
        }
        let truth = seen.text("truth.jsonl").unwrap_or_default();
        Ok(Report {
            asked: expect.asked(),
            failures: expect.failures().to_vec(),
            retries,
            planted: case.boots.iter().flat_map(|b| &b.plants).map(Plant::asked).collect(),
            truth: truth.lines().map(str::to_owned).collect(),
            console,
        })
    }

    fn boots(&self, case: &Case, dir: &Path, retries: &mut u32) -> Result<Vec<Boot>> {
        let mut disk = None;
        if case.boots.iter().any(|plan| plan.machine.boot.has_disk()) {
            let image = disk::image(&self.cache, &Emulator::installed(Arch::X86_64)?)?;
            let layer = disk::overlay(&image, dir)?;
            disk = Some((image, layer));
        }
        let has_store = case.boots.iter().any(|plan| plan.machine.store);
        let store = if has_store { Some(disk::store(dir)?) } else { None };
        let mut boots = Vec::new();
        for (number, plan) in case.boots.iter().enumerate() {
            let dir = dir.join(format!("boot{number}"));
            loop {
                let share = share_of(&dir);
                self.fill_share(case, plan, &share)?;
                let disks = Disks { image: disk.as_ref(), store: store.as_deref() };
                let outcome = match self.boot(case, &plan.machine, &dir, &share, disks) {
                    Err(error) if error.is::<NotReady>() && *retries == 0 => {
                        *retries += 1;
                        fs::rename(&dir, dir.with_extension("mute"))?;
                        continue;
                    }
                    outcome => outcome?,
                };
                // A disk that panics may be what the case wants to see; one that hangs is not.
                let may_die = plan.machine.boot.has_disk();
                let is_mute = outcome.is_mute(may_die);
                if is_mute && *retries == 0 {
                    *retries += 1;
                    fs::rename(&dir, dir.with_extension("mute"))?;
                    continue;
                }
                let console = dir.join("console.log");
                if is_mute {
                    bail!("init never spoke, twice; its console:\n{}", tail_of(&console));
                }
                if !outcome.files.is_empty() {
                    unpack_console_files(&outcome, &share)?;
                }
                boots.push(Boot { share, console, outcome });
                break;
            }
        }
        Ok(boots)
    }

    /// Puts programs into a shared folder.
    ///
    /// # Errors
    /// One cannot be built or is not installed.
    pub fn fill(&self, kernel: &Kernel, programs: &[&str], share: &Path) -> Result<()> {
        let bin = share.join("bin");
        fs::create_dir_all(&bin).with_context(|| format!("{}: make", bin.display()))?;
        let binaries = self.binaries(kernel.arch)?;
        for (from, name) in [(&binaries.rtproof, "rtproof"), (&binaries.plant, "lab-plant")] {
            let copied = fs::copy(from, bin.join(name));
            copied.with_context(|| format!("{}: copy to the share", from.display()))?;
            if kernel.arch == Arch::X86_64 {
                programs::bring_libraries(from, &share.join("root"))?;
            }
        }
        for program in programs {
            programs::bring(program, &bin, &share.join("root"))?;
        }
        Ok(())
    }

    /// Puts script, programs and module into the shared folder.
    fn fill_share(&self, case: &Case, plan: &Plan, share: &Path) -> Result<()> {
        let kernel = plan.machine.kernel_row()?;
        self.fill(kernel, &case.programs, share)?;
        for (name, make) in &case.made {
            let (bin, root) = (share.join("bin"), share.join("root"));
            programs::make(name, *make, &self.native.rtproof, &bin, &root)?;
        }
        if let Some(package) = &case.kernel_package {
            let package = match package {
                KernelPackage::Pinned(kernel) => kernels::named(kernel)?.package(&self.cache)?,
                KernelPackage::File(path) => path.clone(),
            };
            let to = share.join("kernel.deb");
            // The cache may be on another disk.
            fs::hard_link(&package, &to)
                .or_else(|_| fs::copy(&package, &to).map(drop))
                .with_context(|| format!("{}: share", package.display()))?;
        }
        if plan.machine.heat || plan.plants.iter().any(Plant::needs_module) {
            let built = module::build(kernel, &self.cache)?;
            fs::copy(built, share.join("module.ko"))?;
        }
        let plants: String = plan.plants.iter().map(|plant| plant.shell() + "\n").collect();
        let script = &plan.script;
        // What runs in namespaces of its own reads the functions from there.
        fs::write(share.join("functions.sh"), PRELUDE)?;
        let text = format!("{PRELUDE}\n# Plants\n{plants}\n# The case\n{script}\nexit 0\n");
        fs::write(share.join("run.sh"), text)?;
        Ok(())
    }

    fn boot(
        &self,
        case: &Case,
        machine: &Machine,
        dir: &Path,
        share: &Path,
        disks: Disks<'_>,
    ) -> Result<GuestOutcome> {
        let emulator = machine.emulator(&self.cache)?;
        let mut arguments;
        let mut resume = None;
        if machine.boot.has_disk()
            && let Some((image, layer)) = disks.image
        {
            let boot = match machine.boot {
                machine::Boot::Grub => disk::Boot::Grub,
                _ => disk::Boot::Direct(image),
            };
            arguments = machine.hardware(&emulator, &self.cache)?;
            arguments.extend(disk::args(layer, boot));
            arguments.extend(Machine::share_arguments(share));
        } else {
            let ready = machine.kernel_row()?.ready(&self.cache)?;
            match (machine.share, machine.snapshot) {
                (Share::NineP, true) => {
                    let work = dir.join("save");
                    let saved = snapshot::saved(machine, &emulator, &ready, &self.cache, &work)?;
                    arguments = saved.arguments;
                    arguments.extend(Machine::share_arguments(share));
                    resume = Some(saved.state);
                }
                (Share::NineP, false) => {
                    arguments = machine.hardware(&emulator, &self.cache)?;
                    arguments.extend(machine.kernel_arguments(&ready, &ready.initramfs, "")?);
                    arguments.extend(Machine::share_arguments(share));
                    if let (true, Some(store)) = (machine.store, disks.store) {
                        arguments.extend(disk::args(store, disk::Boot::Grub));
                    }
                }
                (Share::Serial, _) => {
                    let mut archive = fs::read(&ready.initramfs)?;
                    archive.extend(initramfs::overlay(share)?);
                    let joined = dir.join("initramfs.cpio");
                    fs::write(&joined, archive)?;
                    arguments = machine.hardware(&emulator, &self.cache)?;
                    arguments.extend(machine.kernel_arguments(&ready, &joined, "")?);
                }
            }
        }
        let cues: &[(String, Cue)] = &case.cues;
        let spec = Spec {
            emulator: &emulator,
            arguments,
            dir,
            speak_limit: match machine.boot.has_disk() {
                true => SPEAK_LIMIT_DISK,
                false => SPEAK_LIMIT,
            },
            limit: case.limit,
            cues,
            ends_at_panic: false,
            interrupted: NEVER,
        };
        let outcome = match &resume {
            Some(state) => state::resume(&spec, state),
            None => process::run(&spec),
        };
        if let (Err(error), Some(state)) = (&outcome, &resume)
            && error.is::<NotReady>()
        {
            // A broken state must not fail every run from now on.
            let _ = fs::remove_file(state);
        }
        outcome
    }
}

/// How each boot must end.
fn check_endings(case: &Case, seen: &Evidence, expect: &mut Expect) {
    for (number, (plan, boot)) in case.boots.iter().zip(seen.boots()).enumerate() {
        let came = &boot.outcome.ending;
        if plan.ends {
            let what = format!("boot {number}: the script ends");
            expect.equal(&what, came, &GuestEnding::Script(0));
        } else {
            let what = format!("boot {number}: the guest ends by itself");
            let holds = matches!(came, GuestEnding::Silent | GuestEnding::DiedEarly);
            expect.that(&what, "no end of the script, no time limit", holds, came);
        }
    }
}

/// What was planted must have been there: without it "nothing was late" says nothing.
fn check_plants(case: &Case, seen: &Evidence, expect: &mut Expect) -> Result<()> {
    for (number, (plan, boot)) in case.boots.iter().zip(seen.boots()).enumerate() {
        if plan.plants.is_empty() || !plan.ends {
            continue;
        }
        let truth = boot.truth()?;
        let what = format!("boot {number}: plants that left their books");
        // The fair server's leave two.
        expect.that(&what, "all", truth.len() >= plan.plants.len(), truth.len());
        for plant in &truth {
            let what = format!("boot {number}: error of a plant");
            expect.equal(&what, plant.text("/error"), "");
        }
    }
    Ok(())
}

/// Files of a guest without a shared folder.
fn unpack_console_files(outcome: &GuestOutcome, share: &Path) -> Result<()> {
    let encoded = share.join("files.b64");
    fs::write(&encoded, outcome.files.join("\n"))?;
    let status = Command::new("sh")
        .args(["-c", "base64 -d files.b64 | tar -xzf -"])
        .current_dir(share)
        .status()
        .context("unpack what came over the console")?;
    if !status.success() {
        bail!("{}: what came over the console is no tar.gz", encoded.display());
    }
    Ok(())
}
