//! Ending the binary with SIGKILL before a chosen system call, by strace, until it has been killed
//! before every one that changes something.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output, Stdio},
};

/// System calls that change a file or a folder, or say that a change is on the disk. strace acts
/// on entry: a process is killed with everything before the call done, and the call not. Files that
/// are made or cut short by `openat` are seen so by the call that follows.
pub(crate) const CALLS: &str = "?write,?writev,?pwrite64,?pwritev,?pwritev2,?sendfile,?splice,?copy_file_range,?ftruncate,\
    ?truncate,?fallocate,?fsync,?fdatasync,?sync,?syncfs,?sync_file_range,?rename,?renameat,\
    ?renameat2,?unlink,?unlinkat,?rmdir,?mkdir,?mkdirat,?mknod,?mknodat,?link,?linkat,?symlink,\
    ?symlinkat,?chmod,?fchmod,?fchmodat,?chown,?fchown,?lchown,?fchownat,?utime,?utimes,\
    ?utimensat,?setxattr,?lsetxattr,?fsetxattr,?removexattr,?lremovexattr,?fremovexattr,?flock";

/// How a run under strace ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Killed before the call.
    Killed,
    /// There were fewer calls.
    ByItself(Output),
}

/// Whether strace is there and may trace.
pub(crate) fn can_trace() -> bool {
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-e", "trace=none", "true"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs the binary, and kills it before its call number `at`, counted from 1.
pub(crate) fn killed_at(binary: &str, folder: &Path, args: &[&str], at: u64) -> End {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={CALLS}"));
    command.arg("-e").arg(format!("inject={CALLS}:signal=KILL:when={at}"));
    command.arg("--").arg(binary).args(args);
    command.current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output().expect("strace runs");
    // strace ends as what it traced.
    match output.status.signal() {
        Some(9) => End::Killed,
        _ => End::ByItself(output),
    }
}
