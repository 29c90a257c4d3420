//! Every export is read by the program it is for: tuned's own loader, ansible-playbook,
//! systemd-analyze and systemd-tmpfiles, the shell and grub-script-check, the kernel's conf.
//!
//! Nothing here touches the machine: values are files of a folder.

mod ansible;
mod builders;
mod grub;
mod machines;
mod sample;
mod script;
mod systemd;
mod tools;
mod tuned;

use rtproof_run::tune::export::ExportSource;
