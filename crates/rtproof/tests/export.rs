//! Every export is read by the program it is for: tuned's own loader, ansible-playbook,
//! systemd-analyze and systemd-tmpfiles, the shell and grub-script-check, the kernel's conf.
//!
//! Nothing here touches the machine: values are files of a folder.

#![allow(clippy::disallowed_methods, reason = "tests read and write their own files")]

#[path = "export/ansible.rs"]
mod ansible;
#[path = "export/builders.rs"]
mod builders;
#[path = "export/grub.rs"]
mod grub;
#[path = "export/machines.rs"]
mod machines;
#[path = "export/sample.rs"]
mod sample;
#[path = "export/script.rs"]
mod script;
#[path = "export/systemd.rs"]
mod systemd;
#[path = "export/tools.rs"]
mod tools;
#[path = "export/tuned.rs"]
mod tuned;

use rtproof_run::tune::export::Source;
