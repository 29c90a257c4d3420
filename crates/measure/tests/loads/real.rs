//! What loads do to the machine, as the kernel counts it, and that it is invisible to others.

use std::path::Path;
use std::time::Duration;

use rtproof_host::CpuList;

use super::Case;
use super::tools::{becomes_so, check, cpus, run, settings, start, stop, temporary, text};

pub(crate) const CASES: &[(&str, Case)] = &[
    ("pings_are_softirqs_of_the_load_cpus", pings_are_softirqs_of_the_load_cpus),
    ("traffic_goes_through_the_named_interface", traffic_goes_through_the_named_interface),
    ("messages_are_context_switches", messages_are_context_switches),
    ("compiling_is_processes", compiling_is_processes),
    ("files_are_seen_by_nobody_else", files_are_seen_by_nobody_else),
    ("namespaces_are_had_without_root", namespaces_are_had_without_root),
];

fn read(path: &str) -> Result<String, String> {
    text(Path::new(path)).ok_or_else(|| format!("{path} cannot be read"))
}

/// Packets that an interface of a process's namespace has received.
fn received(pid: i32, interface: &str) -> Result<u64, String> {
    let text = read(&format!("/proc/{pid}/net/dev"))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    let packets = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
    packets.ok_or_else(|| format!("no {interface} in\n{text}"))
}

/// NET_RX softirqs of a CPU so far.
fn net_rx(cpu: u32) -> Result<u64, String> {
    let text = read("/proc/softirqs")?;
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let column = head.split_ascii_whitespace().position(|name| name == format!("CPU{cpu}"));
    let row = lines.find_map(|line| line.trim().strip_prefix("NET_RX:"));
    let count = row.zip(column).and_then(|(row, at)| row.split_ascii_whitespace().nth(at));
    count.and_then(|count| count.parse().ok()).ok_or_else(|| format!("no NET_RX in\n{text}"))
}

fn namespace(pid: i32) -> Option<std::path::PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "this test's own processes")]
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

fn pings_are_softirqs_of_the_load_cpus() -> Result<String, String> {
    let mut settings = settings("/tmp".as_ref());
    let cpu = cpus().iter().last().ok_or("no CPU")?;
    settings.cpus = CpuList::new([cpu]);
    let before = net_rx(cpu)?;
    let mut running = start("ping:2", &settings)?;
    std::thread::sleep(Duration::from_millis(2200));
    check(running.poll().is_none(), || "it failed".into())?;
    let (work, pid) = (running.work().0, running.pid().ok_or("no process")?);
    let softirqs = net_rx(cpu)? - before;
    let packets = [received(pid, "rtproof0")?, received(pid, "rtproof1")?];
    // Each reply is a packet that came; the other ends are in a namespace of their own.
    check(packets.iter().all(|&count| count > 1000), || format!("packets {packets:?}"))?;
    let all: u64 = packets.iter().sum();
    check(work > 1000 && work <= all, || format!("{work} replies of {all} packets"))?;
    check(softirqs > 100, || format!("{softirqs} softirqs on CPU {cpu}"))?;
    let theirs = namespace(pid).ok_or("no namespace")?;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    check(namespace(own) != Some(theirs), || "the load is in this namespace".into())?;
    check(received(own, "rtproof0").is_err(), || "its devices are seen here".into())?;
    let outcome = stop(running)?;
    check(outcome.error.is_none(), || format!("{outcome:?}"))?;
    Ok(format!("{work} replies, {all} packets, {softirqs} NET_RX softirqs on CPU {cpu}"))
}

fn traffic_goes_through_the_named_interface() -> Result<String, String> {
    // The namespaces of a ping flood are an interface and a peer.
    let ping = start("ping:2", &settings("/tmp".as_ref()))?;
    let pid = ping.pid().ok_or("no process")?;
    becomes_so(Duration::from_secs(5), || received(pid, "rtproof1").is_ok_and(|n| n > 0))
        .ok_or("no flood after 5 s")?;
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let within = |load: &str, ms: u64| {
        let mut settings = settings("/tmp".as_ref());
        let words = ["-n", "-t", &pid.to_string(), &exe.display().to_string(), "load-worker"];
        settings.worker_command = ("nsenter".into(), words.map(str::to_owned).to_vec());
        run(load, &settings, Duration::from_millis(ms))
    };
    let outcome = within("traffic:rtproof1:198.18.0.6", 1200)?;
    check(outcome.error.is_none() && outcome.work > 100, || format!("{outcome:?}"))?;
    check(outcome.detail.contains("198.18.0.6 through rtproof1"), || outcome.detail.clone())?;
    // That peer is not behind the other interface.
    let wrong = within("traffic:nosuch0:198.18.0.6", 1200)?
        .error
        .ok_or("an interface that is not there")?;
    check(wrong.contains("interface nosuch0: No such device"), || wrong.clone())?;
    // Without a route it is looked for behind the interface itself.
    let lost = within("traffic:rtproof1:203.0.113.9", 4500)?.error.ok_or("it is not there")?;
    check(lost.contains("203.0.113.9 has not replied"), || lost.clone())?;
    stop(ping)?;
    Ok(format!("{} replies; {wrong}; {lost}", outcome.work))
}

/// Voluntary switches of all threads of a process.
fn switches(pid: i32) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this test's own processes")]
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let of = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok())
    };
    tasks.filter_map(|task| text(&task.path().join("status")).and_then(of)).sum()
}

fn messages_are_context_switches() -> Result<String, String> {
    let mut running = start("messages", &settings("/tmp".as_ref()))?;
    std::thread::sleep(Duration::from_millis(1500));
    check(running.poll().is_none(), || "it failed".into())?;
    let switched = switches(running.pid().ok_or("no process")?);
    let outcome = stop(running)?;
    check(outcome.error.is_none() && outcome.work > 10_000, || format!("{outcome:?}"))?;
    check(switched > 1000, || format!("{switched} switches"))?;
    Ok(format!("{} messages, {switched} voluntary switches", outcome.work))
}

/// Processes that the machine has started so far.
fn processes() -> Result<u64, String> {
    let text = read("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("processes "));
    line.and_then(|count| count.parse().ok()).ok_or_else(|| "no count of processes".into())
}

fn compiling_is_processes() -> Result<String, String> {
    let dir = temporary();
    let before = processes()?;
    let outcome = run("compile", &settings(dir.path()), Duration::from_millis(2500))?;
    let started = processes()? - before;
    check(outcome.error.is_none() && outcome.work > 0, || format!("{outcome:?}"))?;
    check(started >= outcome.work, || format!("{started} processes, {outcome:?}"))?;
    is_empty(dir.path())?;
    Ok(format!("{} compilations, {started} processes: {}", outcome.work, outcome.detail))
}

#[expect(clippy::disallowed_methods, reason = "this test's own folder")]
fn is_empty(dir: &Path) -> Result<(), String> {
    let left: Vec<_> = dir.read_dir().map_err(|error| error.to_string())?.collect();
    check(left.is_empty(), || format!("left: {left:?}"))
}

fn files_are_seen_by_nobody_else() -> Result<String, String> {
    let dir = temporary();
    let running = start("files", &settings(dir.path()))?;
    let pid = running.pid().ok_or("no process")?;
    // As the load sees it.
    let own = Path::new("/proc").join(pid.to_string()).join("root");
    let own = own.join(dir.path().strip_prefix("/").map_err(|error| error.to_string())?);
    let folder = own.join(format!("cpu{}", cpus().iter().next().ok_or("no CPU")?));
    becomes_so(Duration::from_secs(5), || folder.is_dir()).ok_or("it makes no files")?;
    is_empty(dir.path())?;
    let outcome = stop(running)?;
    check(outcome.error.is_none() && outcome.work > 0, || format!("{outcome:?}"))?;
    is_empty(dir.path())?;
    let error = run("files", &settings("/no/such/dir".as_ref()), Duration::from_millis(300))?;
    let error = error.error.ok_or("a folder that is not there")?;
    check(error.contains("/no/such/dir"), || error.clone())?;
    Ok(format!("{} files: {}", outcome.work, outcome.detail))
}

/// Through a user namespace: needs setpriv(1), a kernel that permits it, and this test where others
/// may execute it.
fn namespaces_are_had_without_root() -> Result<String, String> {
    let dir = temporary();
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), open).map_err(|error| error.to_string())?;
    let mut seen = String::new();
    for load in ["ping", "files", "compile"] {
        let mut settings = settings(dir.path());
        let words = ["--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned);
        let mut words = words.to_vec();
        words.extend([exe.display().to_string(), "load-worker".into()]);
        settings.worker_command = ("setpriv".into(), words);
        let outcome = run(load, &settings, Duration::from_millis(1500))?;
        let error = outcome.error.clone().unwrap_or_default();
        if ["failed to execute", "cannot start setpriv", "user namespaces"]
            .iter()
            .any(|why| error.contains(why))
        {
            return Ok(format!("skipped, not permitted here: {error}"));
        }
        check(error.is_empty() && outcome.work > 0, || format!("{outcome:?}"))?;
        seen += &format!("\n         {load}: {} {}", outcome.work, outcome.unit);
    }
    is_empty(dir.path())?;
    Ok(seen)
}
