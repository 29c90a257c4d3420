//! What the tests on real traces share: where the captures are, and how a test says that it cannot
//! look.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Says why a test cannot look; under `CI=true` what is installed there must be there.
pub(crate) fn ignored(reason: &str, is_for_ci: bool) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!(is_ci && is_for_ci), "under CI=true: {reason}");
    let _ = writeln!(io::stderr(), "ignored: {reason}");
}

/// A capture, read in place: in the folder named by `RTPROOF_CAPTURES`, or in ../shared/data beside
/// the workspace.
pub(crate) fn capture(name: &str) -> Option<PathBuf> {
    let data = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = data.join("captures").join(name);
    if !path.exists() {
        ignored(&format!("no {}; set RTPROOF_CAPTURES", path.display()), false);
        return None;
    }
    Some(path)
}
