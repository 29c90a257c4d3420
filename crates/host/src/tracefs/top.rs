//! A tracer at the top of tracefs: what the whole machine shares, borrowed where nobody uses it.
//!
//! function_graph runs there alone before Linux 6.11. The top is one ring, one tracer and one set
//! of events for everybody; whoever changes it puts all of it back ([`Globals`](super::globals)).

use super::{TracefsError, folder::Stats, instance::cpu_mask, request::TracerRequest, shown};
use crate::Root;

/// The folder of tracefs, in use.
#[derive(Debug)]
pub(super) struct Top(pub(super) &'static str);

/// Whether nobody uses it: no tracer, no event, no filter, nothing recorded that is not read yet.
///
/// # Errors
/// What is used, and how to end that.
pub(super) fn is_free(root: &Root, top: &str, request: &TracerRequest) -> Result<(), TracefsError> {
    let refused = |file: &str, why: String| {
        let path = shown(&format!("{top}/{file}"));
        let why = format!(
            "{why}; this kernel runs `{}` for the whole machine only, and what others trace is not \
             disturbed: nothing was changed",
            request.tracer
        );
        Err(TracefsError::Refused { path, why })
    };
    let found = |file: &str| root.trimmed(&format!("{top}/{file}"));
    for (file, free, how) in [
        ("current_tracer", "nop", "end it with `echo nop`"),
        ("events/enable", "0", "end them with `echo 0`"),
    ] {
        match found(file).value().map(String::as_str) {
            Some(value) if value == free => {}
            Some(value) => return refused(file, format!("is in use ({value}); {how}")),
            None => return refused(file, "cannot be read".into()),
        }
    }
    for file in ["set_ftrace_filter", "set_ftrace_notrace", "set_graph_function"] {
        let is_set = |text: &String| text.lines().any(|line| !line.starts_with('#'));
        if found(file).value().is_some_and(is_set) {
            return refused(file, "another user has set a filter; empty it with `echo >`".into());
        }
    }
    if !request.own.is_empty() {
        return refused("instances", "a filter needs an instance; leave out --only".into());
    }
    let size = found("buffer_size_kb");
    if size.value().is_none_or(|size| size.starts_with('X')) {
        return refused("buffer_size_kb", "its CPUs have rings of different sizes".into());
    }
    let cpus = root.list_numbered(&format!("{top}/per_cpu"), "cpu");
    for cpu in cpus.value().into_iter().flatten() {
        let stats = Stats::read(root, &format!("{top}/per_cpu/cpu{cpu}/stats"));
        let entries = stats.value().map_or(0, |stats| stats.entries);
        if entries > 0 {
            let why = format!("holds {entries} events of another user; read it, then `echo >` it");
            return refused(&format!("per_cpu/cpu{cpu}/trace"), why);
        }
    }
    Ok(())
}

/// Settings that make the top do what an instance does, in this order; the last one starts it.
/// Undone in reverse: the tracer ends first, and the clock empties the ring (`tracing_set_clock`).
pub(super) fn settings(root: &Root, top: &str, request: &TracerRequest) -> Vec<(String, String)> {
    let event = |event: &&str| (super::instance::event_file(event, "enable"), "1".to_owned());
    let own = [
        ("tracing_on", "1".to_owned()),
        ("trace_clock", "mono".to_owned()),
        ("tracing_cpumask", cpu_mask(request.cpus.iter())),
        ("buffer_size_kb", request.ring_kb.to_string()),
        ("options/overwrite", "1".to_owned()),
    ];
    let own = own.into_iter().map(|(file, value)| (file.to_owned(), value));
    let all = own.chain(request.events.iter().map(event));
    let all = all.chain([("current_tracer".to_owned(), request.tracer.to_owned())]);
    let all = all.map(|(file, value)| (format!("{top}/{file}"), value));
    all.filter(|(path, _)| root.exists(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const TOP: &str = "/sys/kernel/tracing";
    const FREE: &[(&str, &str)] = &[
        ("sys/kernel/tracing/current_tracer", "nop\n"),
        ("sys/kernel/tracing/events/enable", "0\n"),
        ("sys/kernel/tracing/set_ftrace_filter", "#### all functions enabled ####\n"),
        ("sys/kernel/tracing/buffer_size_kb", "7 (expanded: 1408)\n"),
        ("sys/kernel/tracing/per_cpu/cpu0/stats", "entries: 0\noverrun: 0\n"),
    ];

    #[test]
    fn the_top_is_taken_only_where_nobody_uses_it() {
        let request = TracerRequest::on_one_cpu("function_graph", 0, Vec::new());
        assert!(is_free(&Tree::new(FREE).root(), TOP, &request).is_ok());
        for (file, text) in [
            ("current_tracer", "function\n"),
            ("events/enable", "X\n"),
            ("set_ftrace_filter", "schedule\n"),
            ("set_graph_function", "schedule\n"),
            ("buffer_size_kb", "X\n"),
            ("per_cpu/cpu0/stats", "entries: 7\n"),
        ] {
            let tree = Tree::new(FREE);
            tree.write(&format!("sys/kernel/tracing/{file}"), text);
            let error = is_free(&tree.root(), TOP, &request).unwrap_err().to_string();
            assert!(error.contains("nothing was changed"), "{file}: {error}");
        }
        let none = is_free(&Tree::new(&[]).root(), TOP, &request).unwrap_err().to_string();
        assert!(none.contains("cannot be read"), "{none}");
    }

    #[test]
    fn the_tracer_starts_last() {
        let files = [("sys/kernel/tracing/trace_clock", "[local] global mono\n"), FREE[0]];
        let request = TracerRequest::on_one_cpu("function_graph", 0, Vec::new());
        let settings = settings(&Tree::new(&files).root(), TOP, &request);
        assert_eq!(settings.first().unwrap().0, format!("{TOP}/trace_clock"));
        assert_eq!(settings.last().unwrap().1, "function_graph");
    }
}
