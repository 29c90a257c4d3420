//! A small source that make takes for Linux, in a git repository: what it "builds" is copied from
//! `images`.

use std::{fs, path::Path, process::Command};

use super::stderr;

/// Without a kconfig: SLAVE follows MASTER, ORPHAN needs PARENT, DOOM does not build without DEED.
const MAKEFILE: &str = "\
kernelversion:\n\t@echo 6.1.0\n\
kernelrelease:\n\t@echo 6.1.0-small\n\
image_name:\n\t@echo arch/x86/boot/bzImage\n\
olddefconfig:\n\
\t@grep -q CONFIG_PARENT=y $(O)/.config || sed -i '/CONFIG_ORPHAN=/d' $(O)/.config\n\
\t@sed -i '/CONFIG_SLAVE=/d' $(O)/.config\n\
\t@! grep -q CONFIG_MASTER=y $(O)/.config || echo CONFIG_SLAVE=y >> $(O)/.config\n\
all: bzImage\nbzImage:\n\t@echo '  CC      init/main.o'\n\t@mkdir -p $(O)/arch/x86/boot\n\
\t@sleep $(PAUSE)\n\
\t@! test -e broken || { echo 'init/main.c:1:2: error: broken' >&2; exit 1; }\n\
\t@if grep -q CONFIG_DOOM=y $(O)/.config && ! grep -q CONFIG_DEED=y $(O)/.config; \
then echo 'a.c:1:2: error: doomed' >&2; exit 1; fi\n\
\t@bad=$$(cat state); for name in $(GUILTY); do grep -q CONFIG_$$name=y $(O)/.config || bad=good; \
done; cp $(IMAGES)/$$bad $(O)/arch/x86/boot/bzImage\n";

/// A configuration.
pub(crate) const HEAD: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.1.0 Kernel \
    Configuration\n#\nCONFIG_BLK_DEV_INITRD=y\nCONFIG_BINFMT_ELF=y\nCONFIG_DEVTMPFS=y\n\
    CONFIG_PROC_FS=y\nCONFIG_SYSFS=y\nCONFIG_SERIAL_8250_CONSOLE=y\n# end of Kernel hacking\n";

/// Whether what a bisection needs is here.
#[allow(clippy::print_stderr, reason = "what is left out is named")]
pub(crate) fn has_programs() -> bool {
    let needed = ["git", "make", "gcc", "flex", "bison", "bc", "perl", "gzip", "base64"];
    let missing: Vec<_> =
        needed.iter().filter(|name| rtproof_host::trusted::find_program(name).is_err()).collect();
    if !missing.is_empty() {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "CI needs {missing:?}: scripts/deps.sh");
        eprintln!("left out: {missing:?} missing");
    }
    missing.is_empty()
}

/// Runs a script, which must succeed.
#[track_caller]
pub(crate) fn sh(at: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(at).output().expect("sh");
    assert!(output.status.success(), "{script}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A configuration of it in `config`, and a repository in `linux`: commits c0, c1, ... of which
/// those in `broken` do not build, and those from `bad` on are bad.
pub(crate) fn repository(at: &Path, commits: usize, bad: usize, broken: &[usize]) {
    fs::create_dir_all(at.join("linux/arch/x86")).expect("a folder");
    fs::write(at.join("linux/Makefile"), MAKEFILE).expect("a file");
    fs::write(at.join("linux/Kconfig"), "config A\n\tbool \"a\"\n").expect("a file");
    fs::write(at.join("linux/arch/x86/Kconfig"), "").expect("a file");
    fs::write(at.join("config"), HEAD).expect("a file");
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    let script = format!(
        "cd linux; git init -q -b main .; git config user.name Ann; git config user.email a@b.example\n\
         i=0; while [ $i -lt {commits} ]; do\n\
         if [ $i -lt {bad} ]; then echo good > state; else echo bad > state; fi\n\
         rm -f broken; case ' {} ' in *\" $i \"*) touch broken;; esac\n\
         echo $i > number; git add -A; git commit -qm \"change $i\"; git tag c$i; i=$((i+1)); done",
        broken.join(" ")
    );
    sh(at, &script);
}
