//! The initial RAM disk of a kernel on trial, made by the distribution's own program: only that
//! knows what the machine needs to mount its root.

use crate::{
    change::places::{INITRD_PROGRAMS, STAGING},
    program,
    tune::{
        kind::{ChangeError, Kind, Machine, Nature, Pace, Side, State, Three, places},
        kinds::{file::of_files, placed},
    },
};

/// How a program is called; `None`: it is none of [`INITRD_PROGRAMS`].
fn arguments<'a>(program: &str, out: &'a str, release: &'a str) -> Option<Vec<&'a str>> {
    match program {
        "mkinitramfs" | "mktirfs" => Some(vec!["-o", out, release]),
        "mkinitcpio" => Some(vec!["-k", release, "-g", out]),
        "dracut" => Some(vec!["--force", out, release]),
        _ => None,
    }
}

/// One initial RAM disk.
pub(super) struct Initrd<'a> {
    pub(super) path: &'a str,
    pub(super) release: &'a str,
    pub(super) program: &'a str,
}

impl Kind for Initrd<'_> {
    fn target(&self) -> String {
        self.path.to_owned()
    }

    fn line(&self) -> String {
        format!("{}: {}", self.path, self.wanted())
    }

    fn wanted(&self) -> String {
        format!("made by {} for {}", self.program, self.release)
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path]
    }

    fn may_be_made(&self) -> Result<(), String> {
        places::placed(self.path)?;
        match places::is_release(self.release) && INITRD_PROGRAMS.contains(&self.program) {
            true => Ok(()),
            false => Err(format!("{} {}: no program and release", self.program, self.release)),
        }
    }

    fn nature(&self) -> Nature {
        of_files(self.path, Pace::Later)
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.tree(self.path)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Tree { files } if files.len() == 1 && files[0].bytes > 0)
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        if !machine.root.is_live() {
            let what = format!("{}: {} makes it", self.path, self.program);
            return Err(ChangeError::NotLive { what });
        }
        let staged = format!("{STAGING}/initrd");
        self.make(&staged).map_err(|why| ChangeError::Refused { path: self.path.into(), why })?;
        machine.place(&staged, self.path, before)
    }

    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        placed::side(machine, self.path, three, |state| self.is_done(machine, state))
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.gate.clean_tree(self.path).map_err(|error| machine.refusal(self.path, error))
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        machine.remove_placed(self.path, three)
    }
}

impl Initrd<'_> {
    /// Makes it in a folder of rtproof's own: a program that outlives us writes nowhere else.
    fn make(&self, to: &str) -> Result<(), String> {
        let name = self.program;
        let Some(arguments) = arguments(name, to, self.release) else {
            return Err(format!("{name}: not one of {}", INITRD_PROGRAMS.join(", ")));
        };
        let mut command = program::command(name).map_err(|error| format!("{name}: {error}"))?;
        program::succeed(command.args(arguments)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_called_with_its_file_and_release() {
        for program in INITRD_PROGRAMS {
            let arguments = arguments(program, "/x/initrd", "6.12").expect(program);
            assert!(arguments.contains(&"/x/initrd") && arguments.contains(&"6.12"), "{program}");
        }
        assert_eq!(arguments("sh", "/x", "6.12"), None);
    }
}
