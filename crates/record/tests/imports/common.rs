//! Where files come from.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use rtproof_record::import::{self, Hints, ImportError, Imported};

/// A file of others, read in place: in the folder named by `RTPROOF_CAPTURES`, or in ../shared/data
/// beside this repository. `None`: there is no such folder.
pub(crate) fn capture(name: &str) -> Option<Vec<u8>> {
    let data = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = data.join("captures").join(name);
    let path = if path.exists() { path } else { data.join(name) };
    if !path.exists() {
        // Not `eprintln!`: the harness shows that of failed tests only.
        let _ = writeln!(io::stderr(), "ignored: no {}; set RTPROOF_CAPTURES", path.display());
        return None;
    }
    Some(std::fs::read(&path).expect("a file that is there"))
}

/// A file of our own, made by Debian's tools on our machine.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = fixtures().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/imports")
}

pub(crate) fn hints(name: &str) -> Hints {
    Hints { name: name.into(), ..Hints::default() }
}

pub(crate) fn read(name: &str, bytes: &[u8]) -> Imported {
    import::read(bytes, &hints(name)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn refused(name: &str, bytes: &[u8]) -> ImportError {
    match import::read(bytes, &hints(name)) {
        Err(error) => error,
        Ok(found) => panic!("{name} was read: {found:?}"),
    }
}

pub(crate) fn has(imported: &Imported, id: &str) -> bool {
    imported.doubts.iter().any(|doubt| doubt.id == id)
}

/// Maxima in microseconds.
pub(crate) fn max_us(imported: &Imported) -> Vec<u64> {
    imported.threads.iter().map(|t| t.max_ns.expect("a maximum") / 1000).collect()
}

pub(crate) fn counts(imported: &Imported) -> Vec<u64> {
    imported.threads.iter().map(|t| t.n).collect()
}
