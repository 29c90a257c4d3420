//! Applications made of a few files, and this process.

use super::*;
use crate::facts::tasks::Policy;
use crate::testing::Tree;

/// A stat line with the fields that matter.
fn stat(tid: u32, comm: &str, priority: u32, policy: u32) -> String {
    let mut fields = vec!["0".to_owned(); 50];
    fields[0] = "S".into();
    fields[7] = "120".into();
    fields[9] = "3".into();
    fields[11] = "40".into();
    fields[12] = "2".into();
    fields[16] = "-5".into();
    fields[17] = "2".into();
    fields[19] = (700 + tid).to_string();
    fields[37] = priority.to_string();
    fields[38] = policy.to_string();
    format!("{tid} ({comm}) {}\n", fields.join(" "))
}

const STATUS: &str = "Name:\tarm\nState:\tS (sleeping)\nTgid:\t100\nTracerPid:\t0\nNSpid:\t100\n\
    VmSize:\t   9000 kB\nVmLck:\t    8000 kB\nVmRSS:\t    5000 kB\nVmSwap:\t       4 kB\n\
    CapEff:\t0000000000800000\nSeccomp:\t2\n";

const THREAD: &str = "Cpus_allowed_list:\t2-3\nMems_allowed_list:\t0\n\
    voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t1\n";

const LIMITS: &str = "Limit Soft Hard Units\n\
    Max locked memory         8388608              unlimited            bytes     \n\
    Max realtime priority     95                   95                   \n\
    Max realtime timeout      unlimited            unlimited            us        \n";

fn machine(cgroup: &str) -> Tree {
    Tree::new(&[
        ("proc/uptime", "12.34 11.00\n"),
        ("proc/100/stat", &stat(100, "arm", 0, 0)),
        ("proc/100/status", STATUS),
        ("proc/100/limits", LIMITS),
        ("proc/100/oom_score_adj", "-900\n"),
        ("proc/100/cgroup", cgroup),
        ("proc/100/task/100/stat", &stat(100, "arm", 0, 0)),
        ("proc/100/task/100/status", THREAD),
        ("proc/100/task/101/stat", &stat(101, "arm loop", 80, 1)),
        ("proc/100/task/101/status", THREAD),
        ("proc/101/status", STATUS),
        ("proc/101/timerslack_ns", "0\n"),
        // 102 ended between the list and the read.
        ("proc/100/task/102/comm", "x"),
    ])
}

const V2: &str = "0::/system.slice/arm.service\n";

#[test]
fn a_process_and_its_threads() {
    let tree = machine(V2);
    let app = App::read(&tree.root(), &Target::Pid(100)).unwrap();
    assert_eq!((app.pid, app.name.as_str(), app.thread_count()), (100, "arm", 2));
    assert_eq!(app.unit.value(), Some(&Some("arm.service".to_owned())));
    assert_eq!(app.uptime_ticks.value(), Some(&1234));
    let process = &app.processes[0];
    let status = process.status.value().unwrap();
    assert_eq!(status.locked_bytes, 8000 * 1024);
    assert_eq!((status.swapped_bytes, status.hugetlb_bytes), (4096, 0));
    assert!(status.cap_sys_nice && !status.cap_ipc_lock);
    assert_eq!((status.seccomp, status.pid_namespaces), (Some(2), 1));
    assert_eq!(process.limits.value().unwrap().rtprio.soft, Some(95));
    assert_eq!(process.oom_score_adj.value(), Some(&-900));
    let thread = process.real_time().next().unwrap();
    let sched = thread.sched.value().unwrap();
    assert_eq!((sched.comm.as_str(), sched.policy, sched.priority), ("arm loop", Policy::Fifo, 80));
    assert_eq!((sched.minor_faults, sched.major_faults, sched.cpu_ticks), (120, 3, 42));
    assert_eq!((sched.nice, sched.start_ticks), (-5, 801));
    assert_eq!(thread.status.value().unwrap().cpus.as_slice(), [2, 3]);
    assert_eq!(thread.timer_slack_ns.value(), Some(&0));
    // A thread's id leads to its process.
    assert_eq!(App::read(&tree.root(), &Target::Pid(101)).unwrap(), app);
}

#[test]
fn a_unit_by_its_control_group_and_its_files() {
    let tree = machine(V2);
    for (path, text) in [
        ("usr/lib/systemd/system/arm.service", "[Service]\nRestrictRealtime=yes\nNice=1\n"),
        ("etc/systemd/system/arm.service.d/rt.conf", "[Service]\nRestrictRealtime=no\n"),
        ("usr/lib/systemd/system/arm.service.d/rt.conf", "[Service]\nNice=9\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu cpuset memory\n"),
        ("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/system.slice/arm.service/cpu.max", "20000 100000\n"),
        ("sys/fs/cgroup/system.slice/arm.service/cpu.stat", "nr_periods 9\nnr_throttled 7\n"),
        ("sys/fs/cgroup/system.slice/arm.service/cpuset.cpus.effective", "2-3\n"),
        ("sys/fs/cgroup/system.slice/arm.service/memory.high", "max\n"),
        ("sys/fs/cgroup/system.slice/arm.service/memory.max", "4096\n"),
        ("sys/fs/cgroup/system.slice/arm.service/memory.events", "low 0\nhigh 1\nmax 2\n"),
    ] {
        tree.write(path, text);
    }
    let app = App::read(&tree.root(), &Target::Unit("arm".into())).unwrap();
    let unit = app.unit_file.value().unwrap().as_ref().unwrap();
    assert_eq!(unit.settings["RestrictRealtime"].value, "no");
    assert_eq!(unit.settings["Nice"].value, "1", "/etc hides the drop-in of the same name");
    assert_eq!(unit.files.len(), 2);
    let cpu = app.groups.cpu.value().unwrap();
    let quotas: Vec<_> = cpu.iter().map(|group| group.quota.value().unwrap().as_ref()).collect();
    let quota = Quota { max_us: Some(20_000), period_us: 100_000 };
    let none = Quota { max_us: None, period_us: 100_000 };
    assert_eq!(quotas, [Some(&quota), Some(&none), None]);
    assert_eq!(cpu[0].throttled.value(), Some(&Some(7)));
    let memory = &app.groups.memory.value().unwrap()[0];
    assert_eq!(memory.limit_bytes.value(), Some(&Some(4096)));
    assert_eq!(memory.hits.value(), Some(&Some(3)));
    let cpuset = &app.groups.cpuset.value().unwrap()[0];
    assert_eq!(cpuset.cpus.value().unwrap().as_ref().unwrap().as_slice(), [2, 3]);
    assert_eq!(cpuset.mems.value(), Some(&None));
}

#[test]
fn version_1_has_a_hierarchy_for_each_controller() {
    let tree = machine("3:cpuset:/\n2:cpu,cpuacct:/rt\n1:name=systemd:/x.scope\n0::/\n");
    for (path, text) in [
        ("sys/fs/cgroup/cpu/rt/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/rt/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/rt/cpu.rt_runtime_us", "0\n"),
        ("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n"),
        ("sys/fs/cgroup/cpu/release_agent", ""),
        ("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-3\n"),
    ] {
        tree.write(path, text);
    }
    let app = App::read(&tree.root(), &Target::Pid(100)).unwrap();
    let cpu = &app.groups.cpu.value().unwrap()[0];
    assert_eq!(cpu.rt_runtime_us.value(), Some(&Some(0)));
    let root = &app.groups.cpu.value().unwrap()[1];
    assert_eq!(root.rt_runtime_us.value(), Some(&None), "the root's is no limit of a group");
    assert_eq!(cpu.quota.value(), Some(&Some(Quota { max_us: None, period_us: 100_000 })));
    let cpuset = &app.groups.cpuset.value().unwrap()[0];
    assert_eq!(cpuset.cpus.value().unwrap().as_ref().unwrap().len(), 4);
    assert!(app.groups.memory.is_absent(), "version 2 is not mounted");
    assert!(app.unit_file.is_absent());
}

#[test]
fn what_is_not_there_names_the_next_step() {
    let tree = machine(V2);
    let error = |target| App::read(&tree.root(), &target).unwrap_err().to_string();
    assert!(error(Target::Pid(7)).contains("ps -e"));
    let link = tree.path().join("etc/systemd/system/alias.service");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/usr/lib/systemd/system/arm.service", link).unwrap();
    let app = App::read(&tree.root(), &Target::Unit("alias".into())).unwrap();
    assert_eq!(app.pid, 100, "by its real name");
    assert!(error(Target::Unit("nope".into())).starts_with("no unit nope.service"));
    tree.write("etc/systemd/system/off@.service", "");
    assert!(error(Target::Unit("off@1".into())).contains("systemctl start off@1.service"));
    tree.write("proc/7/status", "Tgid:\t7\n");
    tree.write(
        "proc/7/stat",
        &stat(7, "kworker", 0, 0).replace("S 0 0 0 0 0 0", "S 0 0 0 0 0 2097152"),
    );
    assert!(error(Target::Pid(7)).contains("thread of the kernel"));
}

#[test]
fn a_group_outside_of_the_namespace_is_unknown() {
    let app = App::read(&machine("0::/../x\n").root(), &Target::Pid(100)).unwrap();
    assert!(app.groups.cpu.why_unknown().unwrap().contains("namespace"));
}

#[test]
fn this_process_can_be_read() {
    let app = App::read(&Root::live(), &Target::Pid(std::process::id())).unwrap();
    assert!(app.thread_count() >= 1 && app.processes[0].limits.value().is_some());
    assert!(app.groups.paths.value().is_some());
}

#[test]
fn a_capture_answers_for_the_application_it_was_taken_with() {
    let target = Target::Pid(std::process::id());
    let capture = crate::Capture::take_with(&Root::live(), &target).unwrap();
    let mut redacted = capture.clone();
    redacted.redact();
    for capture in [capture, redacted] {
        let text = capture.to_text();
        let capture = crate::Capture::read(text.as_bytes()).unwrap().unwrap();
        let app = App::read(&Root::captured(capture), &target).unwrap();
        assert_eq!(app.pid, std::process::id());
        let json = serde_json::to_string(&app).unwrap();
        assert!(!json.contains("not in the capture"), "{json}");
    }
    let other = crate::Capture::take(&Root::live());
    let error = App::read(&Root::captured(other), &target).unwrap_err().to_string();
    assert!(error.contains("capture the machine again, with this process"), "{error}");
}
