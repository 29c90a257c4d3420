//! `rtproof run --rules` on real PREEMPT_RT kernels: programs that break each rule in a line that
//! names it, and programs that break none. The planted programs are those of the tests.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::programs::{compiled, succeed};
use crate::seen::{Evidence, Json};

const C: &str = include_str!("../../../../crates/rtproof/tests/rules/planted.c");
const RUST: &str = include_str!("../../../../crates/rtproof/tests/rules/planted.rs.in");

const ALL: [&str; 13] = [
    "blocking",
    "inheritance",
    "lock",
    "memory",
    "migration",
    "output",
    "page-fault",
    "relative-sleep",
    "scheduling",
    "settable-clock",
    "signal",
    "stack-fault",
    "yield",
];

const RUN: &str = "rtproof run --dma-latency off --no-trace --rules";

pub(super) fn case(kernel: &'static str) -> Case {
    // The logger of the new program would inherit FIFO. One CPU: its loop is bound to none.
    let new = "--policy other --cpus 1 --place affinity --tune none --rules-after mark";
    Case::new(
        format!("launch/rules/{kernel}"),
        "each of thirteen planted breaches is found in its line, in C and Rust, and none in \
         programs that break no rule, as those of `rtproof new`",
        Machine::new(kernel).cpus(2),
    )
    .limit_s(300)
    .made("planted", planted_c)
    .made("planted-rust", planted_rust)
    .made("arm", |rtproof, folder| project(rtproof, folder, "c"))
    .script(format!(
        "run c {RUN} --rules-after signal --json /tmp/o/c.json -- planted
         run rust {RUN} --rules-after signal --json /tmp/o/rust.json -- planted-rust
         run clean {RUN} --rules-after signal --json /tmp/o/clean.json -- planted c
         run new timeout -s TERM 4 {RUN} {new} --json /tmp/o/new.json -- arm"
    ))
    .expect(found)
    .other_word("-- planted\n", "-- planted c\n", "c: rules found in their lines")
    .other_word("--policy other ", "", "new: broken rules")
}

fn planted_c(_: &Path, folder: &Path) -> Result<PathBuf> {
    let compiler = ["cc", "-O0", "-g", "-pthread", "-o", "planted", "planted.c"];
    compiled(folder, "planted.c", C, &compiler)
}

fn planted_rust(_: &Path, folder: &Path) -> Result<PathBuf> {
    let compiler = ["rustc", "-g", "--edition", "2021", "-o", "planted", "planted.rs"];
    compiled(folder, "planted.rs", RUST, &compiler)
}

/// What `rtproof new` makes, built as its page says.
fn project(rtproof: &Path, folder: &Path, language: &str) -> Result<PathBuf> {
    let new = ["new", "arm", "--lang", language];
    succeed(Command::new(rtproof).args(new).current_dir(folder))?;
    succeed(Command::new("make").current_dir(folder.join("arm")))?;
    Ok(folder.join("arm/arm"))
}

fn found(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let all: BTreeSet<String> = ALL.map(str::to_owned).into();
    for (name, source) in [("c", C), ("rust", RUST)] {
        let got = Json::parse(name, &seen.text(&format!("{name}.json"))?)?;
        expect.equal(&format!("{name}: exit code"), seen.rc(name)?, 2);
        let right = in_their_lines(&got, source);
        expect.equal(&format!("{name}: rules found in their lines"), right, all.clone());
        let unknown = got.at("/rules/unknown").to_string();
        expect.equal(&format!("{name}: not known"), unknown, "[]".into());
    }
    for name in ["clean", "new"] {
        let got = Json::parse(name, &seen.text(&format!("{name}.json"))?)?;
        expect.equal(&format!("{name}: broken rules"), broken(&got), BTreeSet::new());
        expect.equal(&format!("{name}: answer"), got.text("/rules/answer"), "kept");
        expect.equal(&format!("{name}: exit code"), seen.rc(name)?, 0);
    }
    Ok(())
}

fn broken(got: &Json) -> BTreeSet<String> {
    let all = got.list("/rules/breaches").iter();
    all.filter_map(|breach| breach["rule"].as_str().map(str::to_owned)).collect()
}

/// The rules that are broken at lines whose comment names them.
fn in_their_lines(got: &Json, source: &str) -> BTreeSet<String> {
    let names_it = |breach: &&serde_json::Value| {
        let line = breach["at"]["line"].as_u64().unwrap_or(0) as usize;
        let line = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let comment = line.split_once("/* ").or_else(|| line.split_once("// "));
        let comment = comment.map_or("", |it| it.1).trim_end_matches(" */");
        comment.split(", ").any(|it| breach["rule"].as_str() == Some(it))
    };
    let all = got.list("/rules/breaches").iter().filter(names_it);
    all.filter_map(|breach| breach["rule"].as_str().map(str::to_owned)).collect()
}
