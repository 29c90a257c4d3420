//! The kernel's own makefile, out of tree.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use rtproof_host::program;

use super::{
    error::KernelError,
    tool::{answer, tool},
};

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
    pub(crate) fn command(&self, targets: &[&str]) -> Result<Command, KernelError> {
        let mut command = tool("make", "make")?;
        command.arg("-C").arg(&self.tree);
        let mut objects = std::ffi::OsString::from("O=");
        objects.push(&self.objects);
        command.arg(objects).args(&self.variables).args(targets);
        // What the caller's shell sets for builds of its own is not ours.
        for name in
            ["MAKEFLAGS", "MAKELEVEL", "KCONFIG_CONFIG", "KCONFIG_ALLCONFIG", "KBUILD_OUTPUT"]
        {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// `kernelversion` or `kernelrelease`.
    pub(crate) fn ask(&self, target: &str) -> Result<String, KernelError> {
        answer(self.command(&["-s", "--no-print-directory", target])?, &self.tree)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    /// The architecture as the source names it: `ARCH=`, else this machine's.
    pub(crate) fn arch(&self) -> String {
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
    pub(crate) fn srcarch(&self) -> String {
        match self.arch().as_str() {
            "x86_64" | "i386" | "i686" => "x86".into(),
            other => other.into(),
        }
    }

    /// Refuses a source that has no such architecture, before make says less.
    pub(crate) fn check_arch(&self) -> Result<(), KernelError> {
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
    pub(crate) fn check_config(&self, path: &Path, text: &str) -> Result<(), KernelError> {
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
    pub(crate) fn check_tools(&self) -> Result<(), KernelError> {
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
                program::find(name).is_ok()
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
        if chosen || program::find("ccache").is_err() {
            return (self, false);
        }
        let prefix = self.variable("CROSS_COMPILE").unwrap_or_default();
        self.variables.push(format!("CC=ccache {prefix}gcc"));
        (self, true)
    }
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
