//! The kernel's own makefile, out of tree.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rtproof_host::{door, trusted};
use rtproof_results::kernel::{
    BUILD_SCHEMA, BuildTest, BuildTests, BuiltFile, BuiltKernel, TESTS_SCHEMA,
};

use crate::KernelError;
use crate::source::SourceTree;
use crate::tool::{Log, OnProgress, answer, tool};

/// A source, and where and how it is built.
#[derive(Clone, Debug)]
pub struct Make {
    pub tree: PathBuf,
    pub objects: PathBuf,
    /// Variables, e.g. `ARCH=arm64`, `CC=gcc-12`.
    pub variables: Vec<String>,
}

impl Make {
    /// The command with its targets.
    ///
    /// # Errors
    /// make is not here.
    pub fn command(&self, targets: &[&str]) -> Result<Command, KernelError> {
        let mut command = tool("make", "make")?;
        command.arg("-C").arg(&self.tree);
        let mut objects = std::ffi::OsString::from("O=");
        objects.push(&self.objects);
        command.arg(objects).args(&self.variables).args(targets);
        Ok(command)
    }

    /// `kernelversion` or `kernelrelease`.
    pub fn ask(&self, target: &str) -> Result<String, KernelError> {
        answer(&mut self.command(&["-s", "--no-print-directory", target])?, &self.tree)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    /// The architecture as the source names it: `ARCH=`, else this machine's.
    pub fn arch(&self) -> String {
        let here = rustix::system::uname().machine().to_string_lossy().into_owned();
        let arch = self.variable("ARCH").unwrap_or(&here);
        match arch {
            "aarch64" => "arm64".into(),
            other if other.starts_with("arm") && other != "arm64" => "arm".into(),
            "x86_64" => "x86_64".into(),
            "ppc64le" | "ppc64" | "ppc" => "powerpc".into(),
            "riscv64" => "riscv".into(),
            "s390x" => "s390".into(),
            other => other.into(),
        }
    }

    /// Its folder below `arch`.
    pub fn srcarch(&self) -> String {
        match self.arch().as_str() {
            "x86_64" | "i386" | "i686" => "x86".into(),
            other => other.into(),
        }
    }

    /// Refuses a source that has no such architecture, before make says less.
    pub fn check_arch(&self) -> Result<(), KernelError> {
        let folder = self.tree.join("arch").join(self.srcarch());
        if folder.join("Kconfig").exists() {
            return Ok(());
        }
        Err(KernelError::path(
            &folder,
            format!(
                "this source has no architecture {}; give another source, or ARCH= with \
                 CROSS_COMPILE= (--set)",
                self.srcarch()
            ),
        ))
    }

    /// Refuses a configuration of another architecture, whose options kconfig would drop one by
    /// one.
    pub fn check_config(&self, path: &Path, text: &str) -> Result<(), KernelError> {
        let head = text.lines().take(8).find_map(|line| line.strip_prefix("# Linux/"));
        let Some((arch, _)) = head.and_then(|rest| rest.split_once(' ')) else { return Ok(()) };
        let folder = if matches!(arch, "x86_64" | "i386") { "x86" } else { arch };
        if folder == self.srcarch() {
            return Ok(());
        }
        Err(KernelError::path(
            path,
            format!(
                "this configuration is for {arch}, and the build is for {}; give one for it, or \
                 --set ARCH={arch} with --set CROSS_COMPILE=",
                self.arch()
            ),
        ))
    }

    /// The compiler, and whether it is here.
    pub fn check_tools(&self) -> Result<(), KernelError> {
        let prefix = self.variable("CROSS_COMPILE").unwrap_or_default();
        let compiler = match (self.variable("CC"), self.variable("LLVM")) {
            (Some(cc), _) => cc.split_whitespace().last().unwrap_or("gcc").to_owned(),
            (None, Some(_)) => "clang".into(),
            (None, None) => format!("{prefix}gcc"),
        };
        let needed = [
            ("make", "make"),
            (compiler.as_str(), "gcc"),
            ("ld", "binutils"),
            ("flex", "flex"),
            ("bison", "bison"),
            ("bc", "bc"),
            ("perl", "perl"),
        ];
        for (name, package) in needed {
            let is_here = if name.contains('/') {
                Path::new(name).exists()
            } else {
                trusted::find_program(name).is_ok()
            };
            if !is_here {
                return Err(KernelError::Missing {
                    program: name.into(),
                    why: "looked for in the system's folders".into(),
                    package: package.into(),
                });
            }
        }
        Ok(())
    }

    /// Puts ccache in front of the compiler where it is here and the user chose no compiler.
    pub(crate) fn with_ccache(mut self) -> (Self, bool) {
        let chosen = self.variable("CC").is_some() || self.variable("LLVM").is_some();
        if chosen || trusted::find_program("ccache").is_err() {
            return (self, false);
        }
        let prefix = self.variable("CROSS_COMPILE").unwrap_or_default();
        self.variables.push(format!("CC=ccache {prefix}gcc"));
        (self, true)
    }
}

// Builds a kernel out of tree, or tests whether configurations build.

/// What `kernel build` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// The kernel's image, and its modules where it has some.
    Image,
    Deb,
    /// The kernel's image alone.
    Kernel,
}

/// Builds what `make.objects` is configured for.
///
/// # Errors
/// No configuration, a program that is missing, whatever the build says.
pub fn build(
    tree: &SourceTree,
    make: Make,
    place: &Path,
    product: Product,
    jobs: usize,
    observer: OnProgress<'_>,
) -> Result<BuiltKernel, KernelError> {
    let objects = make.objects.clone();
    let config = objects.join(".config");
    make.check_arch()?;
    let text = read(&config).map_err(|error| {
        KernelError::path(
            &config,
            format!("{error}; make one with `rtproof kernel config`, or give --config"),
        )
    })?;
    make.check_config(&config, &text)?;
    make.check_tools()?;
    // The first that a build makes (Kbuild); configuring makes less.
    let continued = objects.join("include/generated/bounds.h").exists();
    let (make, ccache) = make.with_ccache();
    let mut log = Log::begin(place.join("build.log"))?;
    // Options that the configuration does not name get their defaults; make would ask for them.
    log.done("olddefconfig", make.command(&["olddefconfig"])?, observer)?;
    let target = match product {
        Product::Image => "all".to_owned(),
        Product::Deb => "bindeb-pkg".to_owned(),
        // The makefile's own name for it.
        Product::Kernel => make.ask("image_name")?.rsplit('/').next().unwrap_or("all").to_owned(),
    };
    let jobs = format!("-j{jobs}");
    let before = packages(place);
    let mut command = make.command(&[&target])?;
    command.arg(jobs);
    let ran = log.done("make", command, observer)?;
    let release = make.ask("kernelrelease")?;
    let image = objects.join(make.ask("image_name")?);
    let mut files = vec![file(&image)?, file(&config)?];
    let new = packages(place).into_iter().filter(|it| !before.contains(it));
    for (path, _) in new {
        files.push(file(&path)?);
    }
    let text = read(&config).map_err(KernelError::io(&config))?;
    let preempt_rt = text.lines().find_map(|line| line.strip_prefix("CONFIG_PREEMPT_RT="));
    Ok(BuiltKernel {
        schema: BUILD_SCHEMA,
        release,
        kernel_source: tree.path.display().to_string(),
        patches: tree.patches.clone(),
        files,
        continued,
        ccache,
        objects: ran.objects,
        warnings: ran.warnings,
        seconds: ran.seconds,
        log: log.path.display().to_string(),
        preempt_rt: preempt_rt.unwrap_or("n").to_owned(),
    })
}

/// Builds each configuration in a folder of its own; one that fails does not stop the others.
///
/// # Errors
/// A program that is missing, or a folder that cannot be written. A build that fails is a row.
pub fn test(
    tree: &SourceTree,
    make: &Make,
    place: &Path,
    configs: &[String],
    jobs: usize,
    observer: OnProgress<'_>,
) -> Result<BuildTests, KernelError> {
    make.check_arch()?;
    make.check_tools()?;
    let mut rows = Vec::new();
    for config in configs {
        let folder = place.join(format!("test-{config}"));
        fs::create_dir_all(&folder).map_err(KernelError::io(&folder))?;
        let (make, _) = Make { objects: folder.clone(), ..make.clone() }.with_ccache();
        let mut log = Log::begin(place.join(format!("test-{config}.log")))?;
        let mut ran = log.run(config, make.command(&[config])?, observer)?;
        if ran.succeeded {
            let mut command = make.command(&["all"])?;
            command.arg(format!("-j{jobs}"));
            ran = log.run(&format!("{config}: make"), command, observer)?;
        }
        rows.push(BuildTest {
            config: config.clone(),
            builds: ran.succeeded,
            objects: ran.objects,
            warnings: ran.warnings,
            seconds: ran.seconds,
            errors: if ran.succeeded { Vec::new() } else { ran.errors },
            log: log.path.display().to_string(),
        });
    }
    Ok(BuildTests { schema: TESTS_SCHEMA, kernel_source: tree.path.display().to_string(), rows })
}

/// Puts a configuration in its place; one that is there and differs is not replaced.
///
/// # Errors
/// It cannot be read, or another one is there.
pub fn take_config(from: &Path, objects: &Path) -> Result<(), KernelError> {
    let bytes = door::read_bytes(from, crate::CONFIG_MAX).map_err(KernelError::io(from))?;
    let to = objects.join(".config");
    match door::read_bytes(&to, crate::CONFIG_MAX) {
        Ok(there) if there == bytes => return Ok(()),
        Ok(_) => {
            let why = format!(
                "another configuration is there than {}; remove it, or name another folder",
                from.display()
            );
            return Err(KernelError::path(to, why));
        }
        Err(_) => {}
    }
    door::write_whole(&to, |file| Ok(file.write_all(&bytes)?))
        .map_err(|error| KernelError::path(to, format!("{error:#}")))
}

/// Packages in the folder, where bindeb-pkg puts them: above the objects; with their times.
#[expect(clippy::disallowed_methods, reason = "the user's own build")]
fn packages(place: &Path) -> Vec<(PathBuf, Option<std::time::SystemTime>)> {
    let entries = fs::read_dir(place).into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path());
    let debs = paths.filter(|path| path.extension().is_some_and(|ending| ending == "deb"));
    debs.map(|path| (path.clone(), path.metadata().and_then(|of| of.modified()).ok())).collect()
}

fn file(path: &Path) -> Result<BuiltFile, KernelError> {
    let of = path.metadata().map_err(KernelError::io(path))?;
    Ok(BuiltFile { path: path.display().to_string(), bytes: of.len() })
}

fn read(path: &Path) -> std::io::Result<String> {
    door::read_text(path, crate::CONFIG_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(variables: &[&str]) -> Make {
        let variables = variables.iter().map(|&it| it.to_owned()).collect();
        Make { tree: "/nowhere".into(), objects: "/nowhere/o".into(), variables }
    }

    #[test]
    fn another_architecture_is_refused_before_anything_is_made() {
        let arm = make(&["ARCH=arm64"]);
        assert!(arm.check_arch().unwrap_err().to_string().contains("no architecture arm64"));
        let head = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.1.0 Kernel \
                    Configuration\n";
        let error = arm.check_config(Path::new("c"), head).unwrap_err();
        assert!(error.to_string().contains("for x86"), "{error}");
        assert!(make(&["ARCH=x86_64"]).check_config(Path::new("c"), head).is_ok());
        let missing = make(&["CC=no-such-cc"]).check_tools().unwrap_err();
        assert!(missing.to_string().starts_with("no-such-cc is needed"), "{missing}");
    }
}
