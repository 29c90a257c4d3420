//! Why there is no answer, and which state of a reading that is.

use std::io;

use rustix::io::Errno;

use crate::Reading;

/// Largest file read whole: /proc/interrupts of 1024 CPUs and 2000 interrupts is about 25 MB, any
/// other file far smaller.
pub(crate) const READ_BYTES_MAX: u64 = 32 << 20;

/// Symbolic links followed for one path, as in the kernel (MAXSYMLINKS).
pub(crate) const LINKS_MAX: u32 = 40;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The kernel's error number.
    Errno(i32),
    /// An error without a number.
    Text(String),
    /// It was not read when the machine was captured.
    NotCaptured,
    /// Left out of the capture.
    Redacted,
}

/// What explains a refused read.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// Lockdown mode other than none.
    pub(crate) lockdown: Option<String>,
    pub(crate) container: bool,
    /// Read on the machine itself, and not by root.
    pub(crate) unprivileged: bool,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::Errno(number),
            None => Self::Text(error.to_string()),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno.raw_os_error())
    }
}

impl Refusal {
    fn errno(&self) -> Option<Errno> {
        match self {
            Self::Errno(number) => Some(Errno::from_raw_os_error(*number)),
            _ => None,
        }
    }

    /// Whether there is no such file. ESRCH: the task of a /proc/PID file is gone.
    pub(crate) fn is_absent(&self) -> bool {
        let absent = [Errno::NOENT, Errno::NOTDIR, Errno::NODEV, Errno::SRCH];
        self.errno().is_some_and(|errno| absent.contains(&errno))
    }

    /// readlink(2): there is something, and it is no link.
    pub(crate) fn is_no_link(&self) -> bool {
        self.errno() == Some(Errno::INVAL)
    }

    /// The state of a reading that it means.
    pub(crate) fn reading<'a, T>(
        &self,
        path: &str,
        surroundings: impl FnOnce() -> &'a Surroundings,
    ) -> Reading<T> {
        if self.is_absent() {
            return Reading::absent(path);
        }
        let why = match self {
            Self::NotCaptured => "not in the capture: it was not read then; capture again".into(),
            Self::Redacted => "left out of the capture, it names the machine".into(),
            Self::Text(text) => text.clone(),
            Self::Errno(number) => {
                let error = io::Error::from_raw_os_error(*number);
                match Errno::from_raw_os_error(*number) {
                    refusal @ (Errno::ACCESS | Errno::PERM) => {
                        format!("{error}{}", why_refused(path, refusal, surroundings()))
                    }
                    _ => error.to_string(),
                }
            }
        };
        Reading::denied(path, why)
    }
}

/// The reason behind a refusal. Lockdown answers EPERM (security/lockdown/lockdown.c) and hides
/// debugfs; EACCES elsewhere is file permissions.
fn why_refused(path: &str, refusal: Errno, around: &Surroundings) -> String {
    let hidden = ["/sys/kernel/debug", "/sys/kernel/tracing", "/dev/", "/proc/kcore"];
    let by_lockdown = refusal == Errno::PERM || hidden.iter().any(|dir| path.starts_with(dir));
    let mut why = String::new();
    if let (true, Some(mode)) = (by_lockdown, &around.lockdown) {
        why += &format!("; the kernel is locked down ({mode})");
    }
    if around.container {
        why += "; inside a container";
    }
    if around.unprivileged {
        why += "; run as root to read it";
    }
    why
}
