//! What an experiment over boots remembers from boot to boot: a file of its own under /var/lib,
//! replaced as a whole, so that a power cut leaves the old one or the new one.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{experiment::setup::settle_ns, usage::usage};

/// Version of the file.
const SCHEMA: &str = "rtproof/experiment-state/1";
/// Folder of experiments, below the root.
const FOLDER: &str = "var/lib/rtproof/experiment";
/// Largest file read: a thousand boots are below 1 MiB.
const BYTES_MAX: u64 = 4 << 20;

/// An experiment over boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    schema: String,
    /// Seed of the order.
    pub seed: u64,
    /// Parameters that are tried, all together.
    pub words: Vec<String>,
    /// Whether each boot is one with them.
    pub order: Vec<bool>,
    /// Length of the slice of a boot.
    pub slice_ns: u64,
    /// Time at its start that is not measured.
    pub settle_ns: u64,
    /// Further arguments of `prove`.
    pub args: Vec<String>,
    /// The boot that was chosen last is to be another one than this.
    pub last_boot_id: String,
    /// Boots that were measured.
    pub boots: Vec<Boot>,
}

/// A boot that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    pub boot_id: String,
    /// Whether it had the parameters.
    pub with: bool,
    pub record: String,
    /// End of the slice.
    pub to_ns: u64,
    /// Wake-ups that were due.
    // The name in files of earlier versions.
    #[serde(alias = "n")]
    pub scheduled: u64,
    /// p99.9 of those.
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Wake-ups that were missed.
    pub missed: u64,
}

impl State {
    /// An experiment that begins.
    pub fn new(
        seed: u64,
        words: Vec<String>,
        order: Vec<bool>,
        slice_ns: u64,
        args: Vec<String>,
    ) -> Self {
        Self {
            schema: SCHEMA.into(),
            seed,
            words,
            order,
            slice_ns,
            settle_ns: settle_ns(slice_ns),
            args,
            last_boot_id: String::new(),
            boots: Vec::new(),
        }
    }

    /// Whether the boot that comes next is one with the parameters; `None`: none comes.
    pub fn next(&self) -> Option<bool> {
        self.order.get(self.boots.len()).copied()
    }

    /// Reads the state of the machine in `root`; `None`: no experiment is under way.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged.
    pub fn read(root: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let path = folder(root).join("state.json");
        let text = match open(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("{}: cannot be read", path.display()));
            }
        };
        let state: Self = serde_json::from_slice(&text).with_context(|| {
            format!("{}: damaged; rtproof experiment end gives it up", path.display())
        })?;
        anyhow::ensure!(
            state.schema == SCHEMA && state.boots.len() <= state.order.len(),
            "{}: not a state of this version, expected {SCHEMA}; rtproof experiment end gives it \
             up",
            path.display()
        );
        Ok(Some(state))
    }

    /// The state of an experiment that is under way.
    ///
    /// # Errors
    /// Usage: there is none.
    pub fn of(root: Option<&Path>) -> anyhow::Result<Self> {
        Self::read(root)?.ok_or_else(|| {
            usage("no experiment over boots is under way; begin one: rtproof experiment boots")
        })
    }

    pub fn write(&self, root: Option<&Path>) -> anyhow::Result<()> {
        let folder = folder(root);
        let path = folder.join("state.json");
        let text = serde_json::to_vec_pretty(self)?;
        let beside = folder.join("state.json.new");
        let write = || -> io::Result<()> {
            fs::create_dir_all(&folder)?;
            let mut file = fs::File::create(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            #[expect(clippy::disallowed_methods, reason = "rtproof's own folder")]
            fs::File::open(&folder)?.sync_all()
        };
        write().with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Forgets the experiment; its records stay.
    pub fn forget(root: Option<&Path>) -> anyhow::Result<()> {
        let path = folder(root).join("state.json");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{}: cannot be removed", path.display()))
            }
            _ => Ok(()),
        }
    }
}

pub fn folder(root: Option<&Path>) -> PathBuf {
    root.unwrap_or_else(|| Path::new("/")).join(FOLDER)
}

fn open(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    rtproof_host::trusted::open(path)?.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_read_and_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Some(folder.path());
        assert_eq!(State::read(root).expect("nothing"), None);
        assert!(State::of(root).expect_err("none").is::<crate::usage::Usage>());
        let words = vec!["nohz_full=2-3".to_owned()];
        let state = State::new(7, words, vec![true, false], 60_000_000_000, Vec::new());
        assert_eq!((state.next(), state.settle_ns), (Some(true), 5_000_000_000));
        state.write(root).expect("written");
        assert_eq!(State::of(root).expect("a state"), state);
        let path = super::folder(root).join("state.json");
        #[expect(clippy::disallowed_methods, reason = "the test's own file")]
        for damaged in ["", "[]", "{\"schema\": \"other\"}", "\0"] {
            fs::write(&path, damaged).expect("written");
            let error = State::of(root).expect_err(damaged).to_string();
            assert!(error.contains("state.json") && error.contains("experiment end"), "{error}");
        }
        State::forget(root).expect("forgotten");
        State::forget(root).expect("nothing to forget");
        assert_eq!(State::read(root).expect("nothing"), None);
    }

    #[test]
    fn a_boot_of_an_earlier_version_is_read() {
        let text = r#"{"boot_id": "a", "with": true, "record": "a.rtproof", "to_ns": 9, "n": 5,
            "p999_ns": 1, "max_ns": 2, "missed": 3}"#;
        let boot: Boot = serde_json::from_str(text).expect("a boot");
        assert_eq!((boot.scheduled, boot.missed), (5, 3));
        let again = serde_json::to_value(&boot).expect("JSON");
        assert_eq!((again["scheduled"].as_u64(), again.get("n")), (Some(5), None));
    }
}
