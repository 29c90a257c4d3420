//! A shell beside the process: when the process ends, however it ends, what it switched on goes.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Stdio},
};

use super::mount::Mount;
use crate::program;

/// What it runs: waits until its input is closed, which the kernel does for a process that is
/// killed; then ends recording and removes the instance, which takes a while where another still
/// reads, and puts back settings that the whole machine shares. In order there is nothing left of
/// either by then. Lines of the file hold a path, a tab, a value.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT USR1 USR2
put() { [ -e "$2" ] && printf '%s' "$1" > "$2"; }
read -r _
tries=0
while [ -d "$1" ] && [ $tries -lt 300 ]; do
    put nop "$1/current_tracer"
    put 0 "$1/tracing_on"
    put 0 "$1/events/enable"
    rmdir "$1" || sleep 0.1
    tries=$((tries + 1))
done 2> /dev/null
[ -f "$2" ] || exit 0
while IFS='	' read -r file value; do
    printf '%s\n' "$value" > "$file"
done < "$2" 2> /dev/null
rm -f "$2"
"#;

/// The shell; dropping it waits for its end.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    /// Starts it for an instance and the file of settings of its user.
    pub(super) fn start(instance: &str, settings: &str) -> io::Result<Self> {
        let mut shell = program::command("sh")?;
        let (stdout, instance) =
            Mount::given(instance).unwrap_or_else(|| (Stdio::null(), instance.to_owned()));
        shell.args(["-c", SCRIPT, "rtproof-guard", &instance, settings]);
        shell.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::null());
        // Ctrl-C is for us alone.
        Ok(Self(shell.process_group(0).spawn()?))
    }

    /// As when it is killed itself.
    #[cfg(test)]
    pub(super) fn kill(&mut self) {
        self.0.kill().unwrap();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
