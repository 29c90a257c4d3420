//! One kernel of a bisection: built, booted, tested. What belongs to the kernel skips the step.
//! What belongs to this machine (a full disk, a missing program) ends the bisection, so that it
//! never passes for a property of a commit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use rtproof_guest::hardware::INSTRUCTION_NS;
use rtproof_results::kernel::{bisect::BisectStep, boot::GuestStep};

use super::{
    boots::{Boots, Test},
    criterion::{Criterion, PANICKED},
    request::BisectRequest,
    watch::Watch,
};
use crate::{
    file::write_whole,
    kernel::{
        KernelError,
        boot::{self, BootRequest},
        build::{self, Product},
        compare::{self, Kernel},
        make::Make,
        source::Tree,
        tool::Progress,
    },
};

/// What makes two builds of the same source differ.
const FIXED: [&str; 4] = [
    "KBUILD_BUILD_TIMESTAMP=2026-01-01",
    "KBUILD_BUILD_USER=rtproof",
    "KBUILD_BUILD_HOST=rtproof",
    "KBUILD_BUILD_VERSION=1",
];

/// What is the same for all steps.
pub(super) struct Rig<'a> {
    pub(super) request: &'a BisectRequest,
    pub(super) make: Make,
    pub(super) watch: Watch<'a>,
}

/// How the source and the objects of all steps are used.
pub(super) fn make(request: &BisectRequest, tree: PathBuf) -> Make {
    let mut variables = request.variables.clone();
    let name = |it: &str| it.split_once('=').map_or_else(String::new, |(name, _)| name.to_owned());
    let given: Vec<String> = variables.iter().map(|it| name(it)).collect();
    let fixed = FIXED.iter().filter(|it| !given.contains(&name(it)));
    variables.extend(fixed.map(ToString::to_string));
    // Beside the machine's own kernels of the same version.
    if request.trial.is_some() && !given.iter().any(|name| name == "LOCALVERSION") {
        variables.push("LOCALVERSION=-bisect".to_owned());
    }
    Make { tree, objects: request.place.join("build"), variables }
}

impl Rig<'_> {
    /// Puts a configuration where the build takes it from.
    pub(super) fn configure(&self, text: &str) -> Result<(), KernelError> {
        let objects = &self.make.objects;
        fs::create_dir_all(objects).map_err(KernelError::io(objects))?;
        let path = objects.join(".config");
        write_whole(&path, |to| Ok(to.write_all(text.as_bytes())?))
            .map_err(|error| KernelError::path(path, format!("{error:#}")))
    }

    /// Folder of a step's logs.
    fn folder(&self, number: usize) -> PathBuf {
        self.request.place.join("steps").join(format!("{number:03}"))
    }

    /// Builds what is configured; `false`: it does not build, and the step has the reason.
    pub(super) fn build(&self, number: usize) -> Result<(BisectStep, bool), KernelError> {
        let folder = self.folder(number);
        let guest = folder.join("boot");
        // Left by a bisection that was killed.
        match fs::remove_dir_all(&guest) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(KernelError::io(guest)(error));
            }
            _ => fs::create_dir_all(&folder).map_err(KernelError::io(&folder))?,
        }
        let folder_shown = folder.display().to_string();
        let mut step = BisectStep { number, folder: folder_shown, ..BisectStep::default() };
        let tree = Tree { path: self.make.tree.clone(), patches: Vec::new() };
        let mut observer = |progress: &Progress| self.watch.observe(progress);
        let began = Instant::now();
        let make = self.make.clone();
        let jobs = self.request.jobs;
        // A guest has no disk for modules; a machine may not boot without.
        let product = self.request.trial.as_ref().map_or(Product::Kernel, |_| Product::Image);
        let built = build::build(&tree, make, &folder, product, jobs, &mut observer);
        step.build_s = began.elapsed().as_secs();
        match built {
            Ok(built) => step.objects = built.objects,
            Err(error) => {
                step.why = format!("does not build: {}", self.of_kernel(error, "build", began)?);
                return Ok((step, false));
            }
        }
        Ok((step, true))
    }

    /// Tests what was built: in a guest, or in the kernel that runs. The outcome of what could be
    /// tested is the caller's.
    pub(super) fn test(
        &self,
        step: &mut BisectStep,
        on: Option<&Boots<'_>>,
    ) -> Result<(), KernelError> {
        let folder = self.folder(step.number).join("boot");
        let began = Instant::now();
        let tested = match on {
            None => self.guest(step, folder),
            Some(boots) => self.here(step, boots, &folder),
        };
        step.boot_s = began.elapsed().as_secs_f64();
        if let Err(error) = tested {
            let text = self.of_kernel(error, "guest", began)?;
            let is_command = matches!(self.request.criterion, Criterion::Command(_));
            if is_command && text.starts_with("kernel panic, while command ran") {
                step.exit = Some(PANICKED);
            }
            step.why = format!("not tested: {text}");
        }
        Ok(())
    }

    fn here(
        &self,
        step: &mut BisectStep,
        boots: &Boots<'_>,
        folder: &Path,
    ) -> Result<(), KernelError> {
        match fs::create_dir(folder) {
            // A test that was killed.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                fs::remove_dir_all(folder).map_err(KernelError::io(folder))?;
                fs::create_dir(folder).map_err(KernelError::io(folder))?;
            }
            made => made.map_err(KernelError::io(folder))?,
        }
        let test = Test {
            step: self.request.boot.steps.first(),
            limit: self.request.boot.limit,
            objects: &self.make.objects,
            folder,
            watch: &self.watch,
        };
        let (kernel, ran) = boots.test(&test)?;
        self.answered(step, kernel, &[ran], 1)
    }

    fn guest(&self, step: &mut BisectStep, folder: PathBuf) -> Result<(), KernelError> {
        let began = Instant::now();
        let request = BootRequest {
            kernel: self.make.objects.clone(),
            config: Some(self.make.objects.join(".config")),
            folder: Some(folder),
            ..self.request.boot.clone()
        };
        let stopped = || self.watch.is_stopped("guest", began.elapsed());
        let booted = boot::boot(&request, &stopped)?;
        self.answered(step, Kernel::of(&booted), &booted.steps, INSTRUCTION_NS)
    }

    /// What the test has said. Lengths are kept in units of so many nanoseconds.
    fn answered(
        &self,
        step: &mut BisectStep,
        kernel: Kernel,
        steps: &[GuestStep],
        unit_ns: u64,
    ) -> Result<(), KernelError> {
        if let Criterion::Command(_) = self.request.criterion {
            let ran = steps.first();
            step.exit = ran.and_then(|ran| ran.exit);
            if let Some(code) = step.exit.filter(|code| !(0..128).contains(code)) {
                let why = format!(
                    "the command ended with {code}: 0 is good, 125 skips, 1 to 127 are bad, others \
                     stop a bisection as `git bisect run` does"
                );
                return Err(KernelError::Guest(anyhow::anyhow!(why)));
            }
            if step.exit.is_none() {
                let why = ran.and_then(|ran| ran.why.clone()).unwrap_or_default();
                return Err(KernelError::path("command", format!("no exit code: {why}")));
            }
            return Ok(());
        }
        let side = compare::measured(kernel, steps)?;
        if let Criterion::Check(id) = &self.request.criterion {
            let finding = side.findings.iter().find(|of| of.check == *id);
            step.check = finding.map(|of| (of.status, of.summary.clone()));
        }
        step.measured = Some(side.side(unit_ns));
        Ok(())
    }

    /// What of an error belongs to the kernel that is tested; all others, and the user's end of
    /// the work, remain errors.
    fn of_kernel(
        &self,
        error: KernelError,
        during: &str,
        began: Instant,
    ) -> Result<String, KernelError> {
        if self.watch.is_stopped(during, began.elapsed()) {
            return Err(error);
        }
        match error {
            // A hint of a build is what this machine lacks.
            KernelError::Failed { ref hint, .. } if during == "build" && !hint.is_empty() => {
                Err(error)
            }
            KernelError::Failed { status, hint, lines, step, .. } => {
                let line = lines.first().map(|line| line.trim().to_owned()).unwrap_or_default();
                Ok(match during {
                    "build" => format!("{step}: {line}"),
                    _ => format!("{status}{hint}"),
                })
            }
            KernelError::Path { path, why } if during != "build" => {
                Ok(format!("{}: {why}", path.display()))
            }
            other => Err(other),
        }
    }
}

/// Whether a step has an answer.
pub(super) fn is_tested(step: &BisectStep) -> bool {
    step.measured.is_some() || step.exit.is_some()
}

/// Removes objects that a build which was cut off may have left torn: kbuild takes what is newer
/// than its sources as whole, and writes `.NAME.cmd` only after NAME.
pub(super) fn sweep(objects: &Path) -> Result<u64, KernelError> {
    let mut swept = 0;
    let mut folders = vec![objects.to_path_buf()];
    while let Some(folder) = folders.pop() {
        #[expect(clippy::disallowed_methods, reason = "the objects of our own build")]
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(KernelError::io(&folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(KernelError::io(&folder))?;
            let kind = entry.file_type().map_err(KernelError::io(entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let made = name.strip_prefix('.').and_then(|name| name.strip_suffix(".cmd"));
            let Some(made) = made.map(|made| folder.join(made)) else { continue };
            let time = |path: &Path| path.metadata().and_then(|of| of.modified()).ok();
            let is_older = time(&made).is_some_and(|time_of| Some(time_of) > time(&entry.path()));
            if is_older || is_torn(&entry.path()) {
                fs::remove_file(entry.path()).map_err(KernelError::io(entry.path()))?;
                // It may not have been made.
                let _ = fs::remove_file(&made);
                swept += 1;
            }
        }
    }
    Ok(swept)
}

/// Whether the list of what an object was made from is cut off: later changes of the rest would be
/// missed. fixdep ends it with a rule of its own.
#[expect(clippy::disallowed_methods, reason = "the objects of our own build")]
fn is_torn(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return true };
    let text = String::from_utf8_lossy(&bytes);
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    !text.ends_with('\n') || text.contains("\ndeps_") && !last.starts_with("$(deps_")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test's own files")]
mod tests {
    use super::*;

    #[test]
    fn an_object_newer_than_its_command_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("kernel")).unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        let names = ["kernel/whole.o", "kernel/.torn.o.cmd", "kernel/plain", "kernel/torn.o"];
        for name in names {
            fs::write(at(name), "savedcmd_x := x\n").unwrap();
        }
        let whole = "savedcmd_x := x\n\nsource_x := x.c\n\ndeps_x := \\\n  a.h \\\n\nx: $(deps_x)\n\n$(deps_x):\n";
        fs::write(at("kernel/.whole.o.cmd"), whole).unwrap();
        for name in &names[..2] {
            let file = fs::File::options().write(true).open(at(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        assert_eq!(sweep(folder.path()).unwrap(), 1);
        assert!(at("kernel/whole.o").exists() && !at("kernel/torn.o").exists());
        assert!(at("kernel/plain").exists());
        assert_eq!(sweep(&at("nothing")).unwrap(), 0);
        for cut in [whole.find("a.h").unwrap(), whole.len() - 1, 3] {
            fs::write(at("kernel/.whole.o.cmd"), &whole[..cut]).unwrap();
            fs::write(at("kernel/whole.o"), "x").unwrap();
            fs::write(at("kernel/.whole.o.cmd"), &whole[..cut]).unwrap();
            assert_eq!(sweep(folder.path()).unwrap(), 1, "{cut}");
            assert!(!at("kernel/whole.o").exists());
        }
    }
}
