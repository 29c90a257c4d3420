//! Each option that takes a path, with what should not be there: nothing waits, nothing else is
//! touched. Options come from clap's tree: a new one is tried as soon as it is there.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use clap::CommandFactory;
use rtproof::exit;

use crate::support::{self, small::Small};

/// A command has to end by itself within this time; one that waits for a signal ends by TERM. Four
/// times what is promised: this is a debug build, and other tests run beside it.
const LIMIT: Duration = Duration::from_secs(20);

/// Without `FULL=1` one case of so many is tried.
const SHARE: u64 = 10;

/// They go on until a signal ends them, or measure for minutes.
const ENDLESS: [&str; 2] = ["watch", "experiment"];

/// Words that a command needs before it comes to look at a path.
const WORDS: [(&str, &[&str]); 6] = [
    ("check explain", &["tickless"]),
    ("check tick", &["bios-settings"]),
    ("run", &["--", "/bin/true"]),
    ("kernel boot", &["--", "/bin/true"]),
    ("kernel config", &["--base", "defconfig"]),
    ("new", &["name", "--lang", "c"]),
];

#[derive(Debug)]
struct Case {
    command: String,
    option: String,
    kind: &'static str,
    args: Vec<String>,
}

/// What is given as a path, by name; `folder` is nobody else's.
fn inputs(folder: &Path) -> Vec<&'static str> {
    let at = |name: &str| folder.join(name);
    fs::create_dir(at("folder")).expect("a folder");
    fs::create_dir(at("foreign")).expect("a folder");
    fs::write(at("foreign/file"), "precious").expect("a file");
    symlink(at("foreign/made"), at("dangling")).expect("a link");
    symlink(at("foreign/file"), at("link")).expect("a link");
    symlink("/proc/self/mem", at("memory")).expect("a link");
    symlink("/dev/zero", at("device")).expect("a link");
    let made = std::process::Command::new("mkfifo").arg(at("fifo")).status();
    assert!(made.expect("mkfifo").success());
    drop(std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket"));
    fs::write(at("unreadable"), "x").expect("a file");
    fs::set_permissions(at("unreadable"), fs::Permissions::from_mode(0o000)).expect("its mode");
    fs::write(at("empty"), "").expect("a file");
    fs::write(at("zeros"), vec![0; 10 << 20]).expect("a file");
    let mut random = vec![0; 10 << 20];
    File::open("/dev/urandom").and_then(|mut from| from.read_exact(&mut random)).expect("bytes");
    fs::write(at("random"), random).expect("a file");
    vec![
        "folder",
        "dangling",
        "link",
        "memory",
        "device",
        "fifo",
        "socket",
        "unreadable",
        "empty",
        "zeros",
        "random",
    ]
}

fn takes_path(arg: &clap::Arg) -> bool {
    let id = arg.get_value_parser().type_id();
    let names = arg.get_value_names().unwrap_or_default();
    let is_typed = id == std::any::TypeId::of::<PathBuf>();
    is_typed || names.iter().any(|name| ["FILE", "DIR", "PATH"].iter().any(|it| name.contains(it)))
}

fn is_time(arg: &clap::Arg) -> bool {
    arg.get_value_names().unwrap_or_default().iter().any(|name| name == "TIME")
}

/// A command line for each option that takes a path and each thing that may be there.
fn cases(
    command: &clap::Command,
    name: &str,
    (kinds, root): (&[&'static str], &Path),
    all: &mut Vec<Case>,
) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        cases(sub, format!("{name} {}", sub.get_name()).trim_start(), (kinds, root), all);
    }
    let args: Vec<&clap::Arg> = command.get_arguments().collect();
    for attacked in args.iter().filter(|arg| takes_path(arg)) {
        for &kind in kinds {
            // What is measured is as short as can be, and what is changed is a machine in a folder.
            let mut words: Vec<String> = name.split(' ').map(str::to_owned).collect();
            for arg in &args {
                let value = match arg.get_id().as_str() {
                    _ if arg.get_id() == attacked.get_id() => kind.to_owned(),
                    "root" => root.display().to_string(),
                    _ if arg.get_long() == Some("for") && is_time(arg) => "100ms".into(),
                    "load" => "idle".into(),
                    "format" if arg.is_required_set() => "csv".into(),
                    "tracer" => "osnoise".into(),
                    "shell" => "bash".into(),
                    _ if arg.is_required_set() && takes_path(arg) => "run.rtproof".into(),
                    _ => continue,
                };
                match arg.get_long() {
                    Some(long) => words.push(format!("--{long}={value}")),
                    None => words.push(value),
                }
            }
            let more = WORDS.iter().find(|(of, _)| *of == name);
            words.extend(more.into_iter().flat_map(|(_, more)| *more).map(|&word| word.into()));
            let (command, option) = (name.to_owned(), attacked.get_id().to_string());
            all.push(Case { command, option, kind, args: words });
        }
    }
}

/// All that is in a folder: kind, mode, size, time of the last change of content.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, i64)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let of = |entry: fs::DirEntry| {
        let of = entry.metadata().expect("its kind");
        (entry.path(), (of.mode(), of.len(), of.mtime_nsec()))
    };
    entries.map(|entry| of(entry.expect("an entry"))).collect()
}

/// Waits; `None`: it still runs.
fn ended(child: &mut Child, within: Duration) -> Option<Option<i32>> {
    let began = Instant::now();
    while began.elapsed() < within {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return Some(status.code());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// What is wrong with how a command took it.
fn attack(case: &Case, root: &Path) -> Vec<String> {
    let folder = support::folder();
    inputs(folder.path());
    fs::copy(root.join("run.rtproof"), folder.path().join("run.rtproof")).expect("a record");
    let foreign = folder.path().join("foreign");
    let before = snapshot(&foreign);
    let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
    let errors = File::create(folder.path().join("stderr")).expect("a file");
    let mut command = support::command(folder.path(), &args);
    command.stdout(Stdio::null()).stderr(errors);
    let mut child = command.spawn().expect("it starts");
    let mut wrong = Vec::new();
    let is_endless = ENDLESS.contains(&case.command.as_str());
    let code = match ended(&mut child, if is_endless { LIMIT / 10 } else { LIMIT }) {
        Some(code) => code,
        None => {
            if !is_endless {
                wrong.push(format!("runs for more than {LIMIT:?}"));
            }
            support::kill("TERM", child.id());
            let code = ended(&mut child, LIMIT);
            if code.is_none() {
                wrong.push("is deaf to TERM".into());
                support::kill("KILL", child.id());
                child.wait().expect("it is ours");
            }
            // By the signal itself, or as the command has it.
            code.flatten().or(Some(0))
        }
    };
    if !exit::CODES.iter().any(|(of, ..)| code == Some((*of).into())) {
        wrong.push(format!("has exit code {code:?}"));
    }
    let text = fs::read(folder.path().join("stderr")).expect("a file");
    let text = String::from_utf8_lossy(&text);
    if text.contains("panicked") {
        wrong.push(text.into_owned());
    }
    if before != snapshot(&foreign) {
        wrong.push("touched what is another's".into());
    }
    let kind = fs::symlink_metadata(folder.path().join("fifo")).map(|of| of.file_type());
    if !kind.is_ok_and(|kind| kind.is_fifo()) {
        wrong.push("removed the pipe".into());
    }
    wrong
}

#[test]
fn no_path_makes_a_command_wait_or_touch_what_is_another_s() {
    let small = Small::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/imports");
    let from = from.join("cyclictest-2.4.json").display().to_string();
    let made = support::run(small.path(), &["import", &from, "--output", "run.rtproof"]);
    support::expect_code(&made, 0);
    let kinds = inputs(support::folder().path());
    let mut all = Vec::new();
    cases(&rtproof::Cli::command(), "", (&kinds, small.path()), &mut all);
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    let is_taken = |index: u64| {
        // splitmix64
        let mut mixed = (index ^ seed.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        support::is_full() || (mixed ^ (mixed >> 31)).is_multiple_of(SHARE)
    };
    let only = std::env::var("ONLY").unwrap_or_default();
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (case, _) in all.iter().zip(0..).filter(|(_, index)| is_taken(*index)) {
        if !format!("{} {} {}", case.command, case.option, case.kind).contains(&only) {
            continue;
        }
        tried += 1;
        let began = Instant::now();
        let faults = attack(case, small.path());
        if began.elapsed() > Duration::from_secs(2) || !faults.is_empty() {
            eprintln!("{:?} {}", began.elapsed(), case.args.join(" "));
        }
        wrong
            .extend(faults.iter().map(|fault| format!("rtproof {}: {fault}", case.args.join(" "))));
    }
    eprintln!("{tried} of {} cases, SEED={seed}", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
