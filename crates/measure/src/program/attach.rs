//! The events of a program that already runs: its threads are listed, and may start others
//! meanwhile.

use rtproof_host::Root;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Purpose, Watch};

/// Files that rtproof itself has open.
const OWN_FILES: u64 = 256;
/// How often everything is opened anew because a thread was started meanwhile.
const ATTEMPTS: usize = 20;

/// Observes each thread of `list`, which is asked again, and the threads that they will start. The
/// threads that are observed; one that was started meanwhile may be missing.
pub fn attach<T: Ord + Clone>(
    root: &Root,
    (purpose, filter): &(Purpose, String),
    cpus: &[u32],
    tid_of: impl Fn(&T) -> u32,
    list: impl Fn() -> Vec<T>,
) -> Result<(Watch, Vec<T>), String> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let before = list();
        let count = before.len() as u64 * cpus.len() as u64 * purpose.sources().len() as u64;
        raise_limit(count + OWN_FILES);
        let mut watch = Watch::new(*purpose, cpus, filter.clone())?;
        let mut observed = Vec::new();
        for thread in &before {
            if watch.add(root, tid_of(thread))? {
                observed.push(thread.clone());
            }
        }
        // One that was started by a thread whose events were half opened has half of them: only
        // where none was started is nothing missing, and nothing reported twice.
        let is_new = list().iter().any(|thread| !before.contains(thread));
        if !is_new || attempt == ATTEMPTS {
            return Ok((watch, observed));
        }
    }
}

/// Each event is an open file. Where the limit stays, opening fails and says so.
fn raise_limit(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= files) {
        return;
    }
    let wish = Rlimit { current: Some(files), maximum: limit.maximum.map(|of| of.max(files)) };
    let _ = setrlimit(Resource::Nofile, wish).or_else(|_| {
        let maximum = limit.maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    });
}
