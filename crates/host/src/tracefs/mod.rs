//! Kernel traces of the live machine: an instance of tracefs of our own, and nothing beside it.
//!
//! An instance (Documentation/trace/ftrace.rst, "Instances") has its own ring, clock, events and
//! triggers, so that whatever else is traced on the machine goes on as it was. Every write goes
//! below the instance's own folder; removing that folder undoes all of them.

pub mod catalogue;
mod events;
mod folder;
mod globals;
mod guard;
mod instance;
mod monitors;
mod mount;
mod name;
mod request;
mod top;
mod tracer;

use std::io;

pub use events::{Missing, WANTED, Wanted};
pub use folder::Stats;
pub use instance::{Instance, Rings};
pub use monitors::Monitors;
pub use mount::shown;
pub use request::TracerRequest;
pub use tracer::{Tracer, has_event};

use crate::{Reading, Root, reading::State};

/// Where tracefs is mounted; before Linux 4.1 and on old systems inside debugfs.
const FOLDERS: &[&str] = &[mount::TRACEFS, "/sys/kernel/debug/tracing"];

/// Why the kernel's events cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// A captured machine has no events.
    #[error("kernel events are recorded on a live machine only, not of a captured one")]
    NotLive,
    /// It is not mounted.
    #[error(
        "tracefs is not mounted: no kernel events; mount it with \
         `mount -t tracefs tracefs /sys/kernel/tracing`"
    )]
    NotMounted,
    /// A container has none, and may not mount it.
    #[error(
        "tracefs is not mounted in this container ({name}): no kernel events; bind the host's \
         /sys/kernel/tracing to the same place, and share the host's PID namespace"
    )]
    NotInContainer { name: String },
    /// The kernel has none.
    #[error(
        "{}: is not there: this kernel was built without event tracing (CONFIG_EVENT_TRACING)",
        FOLDERS[0]
    )]
    NoKernel,
    /// It may not be read.
    #[error("{path}: {why}")]
    Refused {
        path: String,
        /// Why, and the reason behind it.
        why: String,
    },
    /// The kernel lacks a tracer.
    #[error(
        "this kernel has no tracer `{tracer}`: it was built without {}; available_tracers: \
         {available}",
        catalogue::options(tracer)
    )]
    NoTracer {
        tracer: &'static str,
        /// Those that it has.
        available: String,
    },
}

/// The folder of tracefs that can be used; where it is not mounted, one that this process alone
/// sees.
fn find_or_mount(root: &Root) -> Result<&'static str, TracefsError> {
    let found = find(root);
    match found {
        Err(TracefsError::NotMounted) => {
            let own = mount::Mount::own().map(mount::Mount::path);
            own.filter(|own| usable(root, own).is_ok()).ok_or_else(|| {
                let container = crate::facts::virt::Virt::container(root);
                container
                    .map_or(TracefsError::NotMounted, |name| TracefsError::NotInContainer { name })
            })
        }
        found => found,
    }
}

/// The `format` file of an event, e.g. of `raw_syscalls/sys_enter`: its number and its fields.
///
/// # Errors
/// There is no tracefs, or no such event: why.
pub fn event_format(root: &Root, event: &str) -> Result<String, TracefsError> {
    let folder = find_or_mount(root)?;
    let text = root.read_text(&format!("{folder}/events/{event}/format"));
    text.value().cloned().ok_or_else(|| refused(&text))
}

/// The folder of tracefs that is mounted and can be used.
fn find(root: &Root) -> Result<&'static str, TracefsError> {
    if !root.is_live() {
        return Err(TracefsError::NotLive);
    }
    let mut error = None;
    for folder in FOLDERS {
        match usable(root, folder) {
            Ok(()) => return Ok(folder),
            // The first refusal says more than that the other place is not there.
            Err(other) => match error {
                None | Some(TracefsError::NoKernel) => error = Some(other),
                Some(_) => {}
            },
        }
    }
    Err(error.unwrap_or(TracefsError::NoKernel))
}

fn usable(root: &Root, folder: &str) -> Result<(), TracefsError> {
    let names = root.list_dir(folder);
    match &names.state {
        State::Known { value } if value.is_empty() => Err(TracefsError::NotMounted),
        State::Known { value } if !value.iter().any(|name| name == "instances") => {
            Err(TracefsError::Refused {
                path: format!("{folder}/instances"),
                why: "is not there: this kernel cannot record beside another tracer (it needs \
                      Linux 3.10)"
                    .into(),
            })
        }
        State::Known { .. } => listed(root, &format!("{folder}/instances")),
        State::Absent => Err(TracefsError::NoKernel),
        _ => Err(refused(&names)),
    }
}

fn listed(root: &Root, folder: &str) -> Result<(), TracefsError> {
    let names = root.list_dir(folder);
    match names.value() {
        Some(_) => Ok(()),
        None => Err(refused(&names)),
    }
}

fn refused<T>(reading: &Reading<T>) -> TracefsError {
    let why = match &reading.state {
        State::Absent => "is not there".into(),
        State::Denied { why } => why.clone(),
        State::Malformed { found, expected } => format!("holds `{found}`, not {expected}"),
        State::Known { .. } => "cannot be used".into(),
    };
    TracefsError::Refused { path: shown(&reading.path), why }
}

/// The same words for a refused write as for a refused read: with lockdown, container, rights.
fn refused_io(root: &Root, path: &str, error: io::Error) -> TracefsError {
    refused(&root.refused::<()>(path, &error.into()))
}

/// Adds to a refusal of another kind.
fn why(error: &TracefsError) -> String {
    match error {
        TracefsError::Refused { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
