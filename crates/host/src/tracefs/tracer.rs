//! A tracer of the kernel that measures by itself (timerlat, osnoise, hwlat), in an instance of our
//! own, with the settings that all instances share put back afterwards.

use std::fs::File;

use super::{
    TracefsError, find,
    folder::{Folder, Stats, remove_stale},
    globals::{Globals, STATE, restore_stale},
    instance::{cpu_mask, event_file},
};
use crate::{Reading, Root};

/// Size of the ring of the CPU, kilobytes: seconds of samples.
const RING_KB: u64 = 1024;

/// What to run.
#[derive(Clone, Debug)]
pub struct TracerRequest {
    /// Name, as in `available_tracers`.
    pub tracer: &'static str,
    /// Measured CPU.
    pub cpu: u32,
    /// Settings that all instances share: file below the folder of tracefs, value.
    pub shared: Vec<(&'static str, String)>,
    /// Events to enable, `system:event`.
    pub events: &'static [&'static str],
}

/// A running tracer; dropping it ends it, removes its instance and puts settings back.
#[derive(Debug)]
pub struct Tracer {
    folder: Folder,
    cpu: u32,
    /// Put back after the tracer has ended, before the instance goes.
    globals: Option<Globals>,
    /// See [`Tracer::end`].
    settings: Vec<String>,
}

impl Tracer {
    /// Starts it. What killed runs left behind is put back first.
    ///
    /// # Errors
    /// The kernel has no such tracer, another program uses it, or a setting is refused; nothing is
    /// left behind then.
    pub fn start(root: &Root, request: &TracerRequest) -> Result<Self, TracefsError> {
        let top = find(root)?;
        // Instances first: a tracer that ends puts back a threshold of its own, and the settings of
        // one that runs are not those that it found.
        remove_stale(root, top);
        let settings = restore_stale(root, STATE);
        available(root, top, request.tracer)?;
        unused(root, top, request.tracer)?;
        let folder = Folder::make(root, top)?;
        let mut tracer = Self { folder, cpu: request.cpu, globals: None, settings };
        tracer.set_up(top, request)?;
        Ok(tracer)
    }

    fn set_up(&mut self, top: &str, request: &TracerRequest) -> Result<(), TracefsError> {
        self.folder.write("trace_clock", "mono")?;
        self.folder.write("tracing_cpumask", &cpu_mask(std::iter::once(self.cpu)))?;
        self.folder
            .write(&format!("per_cpu/cpu{}/buffer_size_kb", self.cpu), &RING_KB.to_string())?;
        let mut shared: Vec<_> = request
            .shared
            .iter()
            .map(|(file, value)| (format!("{top}/{file}"), value.clone()))
            .collect();
        shared.extend(setting_of_some_kernels(&self.folder.root, top, request));
        if !shared.is_empty() {
            let changed = Globals::change(STATE, &self.folder.path, &shared);
            self.globals = Some(changed.map_err(|error| TracefsError::Refused {
                path: format!("settings of {}", request.tracer),
                why: error.to_string(),
            })?);
        }
        for event in request.events {
            self.folder.write(&event_file(event, "enable"), "1")?;
        }
        self.folder.write("current_tracer", request.tracer)
    }

    /// Ends it. A sentence for each setting that a killed run had left changed, and for each that
    /// could not be put back.
    #[must_use]
    pub fn end(mut self) -> Vec<String> {
        self.take_down();
        std::mem::take(&mut self.settings)
    }

    fn take_down(&mut self) {
        // Its threads end with it; settings change only while no tracer uses them.
        let _ = self.folder.write("current_tracer", "nop");
        let left = self.globals.take().map(|mut globals| globals.put_back());
        self.settings.extend(left.into_iter().flatten());
        self.folder.remove();
    }

    /// Its lines, as text. A read never waits: without a line it answers with
    /// [`std::io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// Opening is refused.
    pub fn lines(&self) -> Result<File, TracefsError> {
        self.folder.pipe(self.cpu, "trace_pipe")
    }

    /// What the kernel counts of the CPU's ring.
    #[must_use]
    pub fn stats(&self) -> Reading<Stats> {
        self.folder.stats(self.cpu)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.take_down();
    }
}

/// A setting to change that not every kernel has: the switch (since Linux 6.2) without which
/// timerlat and osnoise start no threads and measure nothing, if it was left off; and
/// which CPUs hwlat goes to (since 5.14), which the kernel itself changes where it may go to one
/// alone.
fn setting_of_some_kernels(
    root: &Root,
    top: &str,
    request: &TracerRequest,
) -> Option<(String, String)> {
    const OPTION: &str = "OSNOISE_WORKLOAD";
    if request.tracer == "hwlat" {
        let path = format!("{top}/hwlat_detector/mode");
        return root.exists(&path).then(|| (path, "none".to_owned()));
    }
    let path = format!("{top}/osnoise/options");
    let text = root.trimmed(&path);
    let mut options = text.value()?.split_whitespace();
    let is_off = options.any(|option| option.strip_prefix("NO_") == Some(OPTION));
    let is_meant = request.tracer == "timerlat" || request.tracer == "osnoise";
    (is_off && is_meant).then(|| (path, OPTION.to_owned()))
}

/// Whether the kernel has a tracer.
fn available(root: &Root, top: &str, tracer: &'static str) -> Result<(), TracefsError> {
    let text = root.trimmed(&format!("{top}/available_tracers"));
    let all = text.value().cloned().unwrap_or_default();
    if all.split_whitespace().any(|one| one == tracer) {
        return Ok(());
    }
    Err(TracefsError::NoTracer { tracer, available: all })
}

/// Whether no tracer runs: its settings are shared.
fn unused(root: &Root, top: &str, tracer: &'static str) -> Result<(), TracefsError> {
    let names = root.list_dir(&format!("{top}/instances"));
    let instances =
        names.value().into_iter().flatten().map(|name| format!("{top}/instances/{name}"));
    // They share threads and settings.
    let same = |other: &str| {
        (other == tracer && tracer != "nop")
            || (["timerlat", "osnoise"].contains(&other) && tracer != "hwlat")
    };
    for folder in std::iter::once(top.to_owned()).chain(instances) {
        let path = format!("{folder}/current_tracer");
        if root.trimmed(&path).value().is_some_and(|other| same(other)) {
            let why = format!(
                "another user runs a tracer that shares the settings of `{tracer}`; end it first"
            );
            return Err(TracefsError::Refused { path, why });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const TOP: &str = "/sys/kernel/tracing";

    #[test]
    fn a_tracer_that_the_kernel_lacks_is_named_with_those_it_has() {
        let tree = Tree::new(&[("sys/kernel/tracing/available_tracers", "osnoise function nop\n")]);
        assert!(available(&tree.root(), TOP, "osnoise").is_ok());
        let error = available(&tree.root(), TOP, "timerlat").unwrap_err().to_string();
        assert!(error.contains("CONFIG_TIMERLAT_TRACER") && error.contains("osnoise function nop"));
        assert!(available(&Tree::new(&[]).root(), TOP, "hwlat").is_err());
    }

    #[test]
    fn a_tracer_in_use_is_left_alone() {
        let tree = Tree::new(&[
            ("sys/kernel/tracing/current_tracer", "nop\n"),
            ("sys/kernel/tracing/instances/rtla/current_tracer", "osnoise\n"),
        ]);
        let error = unused(&tree.root(), TOP, "timerlat").unwrap_err().to_string();
        assert!(error.contains("instances/rtla/current_tracer"), "{error}");
        assert!(unused(&tree.root(), TOP, "hwlat").is_ok());
        tree.write("sys/kernel/tracing/current_tracer", "hwlat\n");
        assert!(unused(&tree.root(), TOP, "hwlat").is_err());
    }

    #[test]
    fn settings_of_some_kernels_are_changed_where_they_are() {
        let request = |tracer| TracerRequest { tracer, cpu: 0, shared: Vec::new(), events: &[] };
        let options = |text: &str| Tree::new(&[("sys/kernel/tracing/osnoise/options", text)]);
        let off = options("NO_DEFAULTS NO_OSNOISE_WORKLOAD NO_PANIC_ON_STOP \n");
        let found = setting_of_some_kernels(&off.root(), TOP, &request("timerlat"));
        let path = format!("{TOP}/osnoise/options");
        assert_eq!(found, Some((path, "OSNOISE_WORKLOAD".to_owned())));
        assert_eq!(setting_of_some_kernels(&off.root(), TOP, &request("hwlat")), None);
        let on = options("NO_DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP \n");
        assert_eq!(setting_of_some_kernels(&on.root(), TOP, &request("timerlat")), None);
        assert_eq!(
            setting_of_some_kernels(&Tree::new(&[]).root(), TOP, &request("timerlat")),
            None
        );
        let mode = ("sys/kernel/tracing/hwlat_detector/mode", "none [round-robin] per-cpu\n");
        let found = setting_of_some_kernels(&Tree::new(&[mode]).root(), TOP, &request("hwlat"));
        assert_eq!(found, Some((format!("{TOP}/hwlat_detector/mode"), "none".to_owned())));
    }

    /// `nop` is in every kernel: what there is beside the tracer itself works with it.
    #[test]
    fn an_instance_is_made_read_and_removed() {
        let root = Root::live();
        let request = TracerRequest { tracer: "nop", cpu: 0, shared: Vec::new(), events: &[] };
        let tracer = match Tracer::start(&root, &request) {
            Ok(tracer) => tracer,
            // Without tracefs, or without the right to it.
            Err(_) => return,
        };
        let folder = tracer.folder.path.clone();
        assert!(root.exists(&folder) && tracer.lines().is_ok());
        assert!(tracer.stats().value().is_some());
        assert!(tracer.end().is_empty());
        assert!(!root.exists(&folder));
    }
}
