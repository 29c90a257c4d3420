//! A tracer of the kernel, in an instance of our own, with the settings that all instances share
//! put back afterwards. Where the kernel runs a tracer in no instance, it runs at the top.

#![expect(clippy::disallowed_methods, reason = "files of tracefs, of the live machine only")]

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
};

use rustix::{fs::OFlags, io::Errno};

use super::globals::{Globals, STATE, restore_stale};
use super::instance::{
    InstanceFolder, RingStats, TracefsFolder, TracerRequest, cpu_mask, event_file, remove_stale,
};
use super::{Keeps, TracefsError, find_mount, find_or_mount, instance, refused_io, shown_path};
use crate::{CpuList, Reading, Root};

/// What all instances share of the tracers that measure against a threshold.
const THRESHOLD: &str = "tracing_thresh";

/// A running tracer; dropping it ends it, removes its instance and puts settings back.
#[derive(Debug)]
pub struct Tracer {
    folder: InstanceFolder,
    cpus: CpuList,
    /// Put back after the tracer has ended, before the instance goes.
    globals: Option<Globals>,
    /// Where it runs, if it cannot run in an instance.
    top: Option<TracefsFolder>,
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
        // Settings that another process restores need a path that it sees.
        let is_shared = !request.shared.is_empty() || !request.options.is_empty();
        let top = if is_shared { find_mount(root)? } else { find_or_mount(root)? };
        // Instances first: a tracer that ends puts back a threshold of its own, and the settings of
        // one that runs are not those that it found.
        remove_stale(root, top);
        let settings = restore_stale(root, STATE);
        available(root, top, request.tracer)?;
        unused(root, top, request)?;
        let folder = InstanceFolder::make(root, top)?;
        let cpus = request.cpus.clone();
        let mut tracer = Self { folder, cpus, globals: None, top: None, settings };
        tracer.set_up(top, request)?;
        Ok(tracer)
    }

    fn set_up(&mut self, top: &'static str, request: &TracerRequest) -> Result<(), TracefsError> {
        self.folder.write("trace_clock", "mono")?;
        self.folder.write("tracing_cpumask", &cpu_mask(self.cpus.iter()))?;
        for cpu in self.cpus.iter() {
            let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            self.folder.write(&file, &request.ring_kb.to_string())?;
        }
        let mut shared: Vec<_> = request
            .shared
            .iter()
            .map(|(file, value)| (format!("{top}/{file}"), value.clone()))
            .collect();
        shared.extend(setting_of_some_kernels(&self.folder.root, top, request));
        let option = |(name, value): &(&str, &str)| (option(top, name), (*value).to_owned());
        let options = request.options.iter().map(option);
        shared.extend(options.filter(|(path, _)| self.folder.root.exists(path)));
        self.share(request.tracer, &shared)?;
        for event in &request.events {
            self.folder.write(&event_file(event, "enable"), "1")?;
        }
        for (file, value) in &request.own {
            self.folder.write(file, value)?;
        }
        let path = self.folder.file("current_tracer");
        match self.folder.try_write("current_tracer", request.tracer) {
            Ok(()) => self.own_options(request),
            Err(error) if is_only_global(&error) => self.set_up_at_top(top, request, shared),
            Err(error) => Err(refused_io(&self.folder.root, &path, error)),
        }
    }

    /// Options of a tracer are in the folder of an instance once it runs there.
    fn own_options(&self, request: &TracerRequest) -> Result<(), TracefsError> {
        for (name, value) in request.options {
            let file = format!("options/{name}");
            if self.folder.root.exists(&self.folder.file(&file)) {
                self.folder.write(&file, value)?;
            }
        }
        Ok(())
    }

    /// The same at the top, which is a machine-wide setting as a whole.
    fn set_up_at_top(
        &mut self,
        top: &'static str,
        request: &TracerRequest,
        shared: Vec<(String, String)>,
    ) -> Result<(), TracefsError> {
        instance::is_free(&self.folder.root, top, request)?;
        if let Some(mut globals) = self.globals.take() {
            self.settings.extend(globals.put_back());
        }
        let all = shared.into_iter().chain(instance::settings(&self.folder.root, top, request));
        self.share(request.tracer, &all.collect::<Vec<_>>())?;
        self.top = Some(TracefsFolder(top));
        Ok(())
    }

    fn share(&mut self, tracer: &str, shared: &[(String, String)]) -> Result<(), TracefsError> {
        if shared.is_empty() {
            return Ok(());
        }
        let changed = Globals::change(STATE, &self.folder.path, shared);
        self.globals = Some(changed.map_err(|error| TracefsError::Refused {
            path: format!("settings of {tracer}"),
            why: error.to_string(),
        })?);
        Ok(())
    }

    /// Ends it. A sentence for each setting that a killed run left changed, and for each that
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

    /// Whether the kernel runs it for the whole machine, in no instance.
    pub fn is_global(&self) -> bool {
        self.top.is_some()
    }

    /// Its folder: of the instance, or the top.
    pub fn path(&self) -> &str {
        self.top.as_ref().map_or(&self.folder.path, |top| top.0)
    }

    /// Its lines on its first CPU, as text. A read never waits: without a line it answers with
    /// [`std::io::ErrorKind::WouldBlock`].
    pub fn lines(&self) -> Result<File, TracefsError> {
        self.folder.pipe(self.cpus.iter().next().unwrap_or(0), "trace_pipe")
    }

    /// The lines of all its CPUs, likewise.
    pub fn all_lines(&self) -> Result<File, TracefsError> {
        self.open("trace_pipe")
    }

    /// The recorded trace so far, as text with its header.
    pub fn text(&self) -> Result<File, TracefsError> {
        self.open("trace")
    }

    fn open(&self, name: &str) -> Result<File, TracefsError> {
        let path = format!("{}/{name}", self.path());
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        file.map_err(|error| refused_io(&self.folder.root, &path, error))
    }

    /// Goes on, or stops for a while.
    pub fn set_on(&self, on: bool) -> Result<(), TracefsError> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    /// The longest latency that a tracer keeps; microseconds, as the kernel has it.
    ///
    /// # Errors
    /// It cannot be read, or is no number.
    pub fn longest_us(&self) -> Result<u64, TracefsError> {
        let reading = self.folder.root.trimmed(&format!("{}/tracing_max_latency", self.path()));
        let number = reading.value().and_then(|text| text.parse().ok());
        number.ok_or_else(|| super::refused(&reading))
    }

    /// Forgets it: the next one is kept, however short.
    pub fn forget_longest(&self) -> Result<(), TracefsError> {
        self.write("tracing_max_latency", "0")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TracefsError> {
        let path = format!("{}/{name}", self.path());
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(|error| refused_io(&self.folder.root, &path, error))
    }

    /// What the kernel counts of the rings of its CPUs, by CPU.
    pub fn all_stats(&self) -> impl Iterator<Item = (u32, Reading<RingStats>)> + '_ {
        let of = |cpu| {
            let path = format!("{}/per_cpu/cpu{cpu}/stats", self.path());
            (cpu, RingStats::read(&self.folder.root, &path))
        };
        self.cpus.iter().map(of)
    }

    /// What the kernel counts of its first CPU's ring.
    pub fn stats(&self) -> Reading<RingStats> {
        self.folder.stats(self.cpus.iter().next().unwrap_or(0))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.take_down();
    }
}

/// An option of a tracer, for the whole machine.
fn option(top: &str, name: &str) -> String {
    format!("{top}/options/{name}")
}

/// What the kernel answers where a tracer runs at the top alone (`tracing_set_tracer`).
fn is_only_global(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INVAL.raw_os_error())
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
    if let Some(zero) = zero_threshold(root, top, request) {
        return Some(zero);
    }
    if request.tracer == "hwlat" {
        let path = format!("{top}/hwlat_detector/mode");
        // A thread that stays on its CPU, or one that goes from CPU to CPU. That of `none` may run
        // on any (seen on 7.2), and what it finds elsewhere is not traced.
        let mode = if request.cpus.len() == 1 { "per-cpu" } else { "round-robin" };
        return root.exists(&path).then(|| (path, mode.to_owned()));
    }
    let path = format!("{top}/osnoise/options");
    let text = root.trimmed(&path);
    let mut options = text.value()?.split_whitespace();
    let is_off = options.any(|option| option.strip_prefix("NO_") == Some(OPTION));
    let is_workload_tracer = request.tracer == "timerlat" || request.tracer == "osnoise";
    (is_off && is_workload_tracer).then(|| (path, OPTION.to_owned()))
}

/// Whether the kernel has an event, `system:event`, where tracefs is mounted.
pub fn has_event(root: &Root, event: &str) -> bool {
    let file = event_file(event, "enable");
    find_or_mount(root).is_ok_and(|top| root.exists(&format!("{top}/{file}")))
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
fn unused(root: &Root, top: &str, request: &TracerRequest) -> Result<(), TracefsError> {
    let tracer = request.tracer;
    let names = root.list_dir(&format!("{top}/instances"));
    let instances =
        names.value().into_iter().flatten().map(|name| format!("{top}/instances/{name}"));
    let changes_threshold = request.shared.iter().any(|(file, _)| *file == THRESHOLD)
        || zero_threshold(root, top, request).is_some();
    let is_in_the_way = |other: &str| {
        super::exclude_each_other(tracer, other) || changes_threshold && super::has_threshold(other)
    };
    for folder in std::iter::once(top.to_owned()).chain(instances) {
        let path = format!("{folder}/current_tracer");
        let other = root.trimmed(&path);
        if let Some(other) = other.value().filter(|other| is_in_the_way(other)) {
            let path = shown_path(&path);
            let why = format!(
                "another user runs `{other}`, which shares settings with `{tracer}`; end it first \
                 (`echo nop > {path}`), nothing was changed"
            );
            return Err(TracefsError::Refused { path, why });
        }
    }
    Ok(())
}

/// A threshold that another user left behind: with one, the kernel keeps the last latency above
/// it, and not the longest (`report_latency` in kernel/trace/trace_sched_wakeup.c).
fn zero_threshold(root: &Root, top: &str, request: &TracerRequest) -> Option<(String, String)> {
    let keeps = super::find_tracer(request.tracer)?.keeps;
    let path = format!("{top}/{THRESHOLD}");
    let is_set = root.trimmed(&path).value().is_some_and(|text| text != "0");
    (keeps == Keeps::Longest && is_set).then(|| (path, "0".to_owned()))
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
        let unused = |tracer| {
            let request = TracerRequest::on_one_cpu(tracer, 0, Vec::new());
            unused(&tree.root(), TOP, &request)
        };
        let error = unused("timerlat").unwrap_err().to_string();
        assert!(error.contains("instances/rtla/current_tracer"), "{error}");
        assert!(error.contains("`osnoise`") && error.contains("nothing was changed"), "{error}");
        assert!(unused("hwlat").is_ok() && unused("nop").is_ok() && unused("wakeup_rt").is_ok());
        tree.write("sys/kernel/tracing/current_tracer", "hwlat\n");
        assert!(unused("hwlat").is_err());
        tree.write("sys/kernel/tracing/current_tracer", "wakeup\n");
        assert!(unused("wakeup_rt").is_err() && unused("irqsoff").is_ok());
    }

    #[test]
    fn a_threshold_that_was_left_is_zero_meanwhile_and_one_in_use_is_not_touched() {
        let tree = Tree::new(&[
            ("sys/kernel/tracing/tracing_thresh", "50\n"),
            ("sys/kernel/tracing/current_tracer", "nop\n"),
            ("sys/kernel/tracing/instances/x/current_tracer", "nop\n"),
        ]);
        let request = TracerRequest::on_one_cpu("wakeup_rt", 0, Vec::new());
        let zero = Some((format!("{TOP}/tracing_thresh"), "0".to_owned()));
        assert_eq!(setting_of_some_kernels(&tree.root(), TOP, &request), zero);
        assert!(unused(&tree.root(), TOP, &request).is_ok());
        tree.write("sys/kernel/tracing/instances/x/current_tracer", "irqsoff\n");
        let error = unused(&tree.root(), TOP, &request).unwrap_err().to_string();
        assert!(error.contains("`irqsoff`"), "{error}");
        tree.write("sys/kernel/tracing/tracing_thresh", "0\n");
        assert!(unused(&tree.root(), TOP, &request).is_ok());
    }

    #[test]
    fn settings_of_some_kernels_are_changed_where_they_are() {
        let request = |tracer| TracerRequest::on_one_cpu(tracer, 0, Vec::new());
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
        assert_eq!(found, Some((format!("{TOP}/hwlat_detector/mode"), "per-cpu".to_owned())));
    }

    /// `nop` is in every kernel: everything but the tracer itself works with it.
    #[test]
    fn an_instance_is_made_read_and_removed() {
        let root = Root::live();
        let request = TracerRequest::on_one_cpu("nop", 0, Vec::new());
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
