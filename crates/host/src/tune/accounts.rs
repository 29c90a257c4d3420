//! The tools that make groups of users and their members: those of shadow, else those of busybox.
//! rtproof itself never writes /etc/group: the tools know its lock and the files beside it.

use std::io;

use super::systemctl::Answer;
use crate::program;

/// What runs the tools, or a test double.
pub trait Accounts {
    /// Whether the machine has a tool.
    fn has(&self, program: &str) -> bool;

    /// Runs a tool with arguments.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Answer>;
}

/// The machine's own tools.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccountTools;

impl Accounts for AccountTools {
    fn has(&self, program: &str) -> bool {
        program::find(program).is_ok()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Answer> {
        Answer::of(program::command(program)?.args(arguments))
    }
}
