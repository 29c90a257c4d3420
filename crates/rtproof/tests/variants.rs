//! A captured machine with a small change: mistakes that other tools make, or leave their users to
//! make, and that `check` has to catch. One file each in fixtures/variants.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::{files, folder, run, stderr};
use rtproof_host::Capture;
use serde::Deserialize;
use serde_json::Value;

/// One variant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    /// What happened, and where that is known from.
    #[expect(dead_code, reason = "for the reader of the file")]
    about: String,
    /// File in fixtures/machines.
    machine: String,
    /// Arguments of `check`.
    #[serde(default)]
    args: Vec<String>,
    /// Files put in place of what was there; `{}` stands for the former text without its line end.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Paths made absent.
    #[serde(default)]
    absent: Vec<String>,
    /// Paths made refused.
    #[serde(default)]
    denied: Vec<String>,
    /// What has to be found.
    expect: Vec<Expect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    check: String,
    /// Statuses that are right.
    status: Vec<String>,
    /// Words that the finding has to say.
    #[serde(default)]
    says: Vec<String>,
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn text_of(capture: &str, path: &str) -> String {
    let head = format!("== {path} file\n");
    let Some((_, rest)) = capture.split_once(&head) else { return String::new() };
    let lines = rest.lines().map_while(|line| line.strip_prefix(['|', ':']));
    lines.collect::<Vec<_>>().join("\n")
}

fn findings(variant: &Variant) -> Vec<Value> {
    let machine = fixtures().join("machines").join(&variant.machine);
    let text = fs::read_to_string(&machine).expect("a machine");
    let mut capture = Capture::parse(text.as_bytes()).expect("a capture");
    for (path, content) in &variant.files {
        let content = content.replace("{}", &text_of(&text, path));
        capture.set_file(path, format!("{content}\n").as_bytes());
    }
    variant.absent.iter().for_each(|path| capture.set_absent(path));
    variant.denied.iter().for_each(|path| capture.set_denied(path));
    let at = folder();
    let changed = at.path().join("machine.txt");
    fs::write(&changed, capture.to_text()).expect("the machine is written");
    let root = changed.to_str().expect("UTF-8");
    let args: Vec<&str> = ["check", "--json", "--root", root]
        .into_iter()
        .chain(variant.args.iter().map(String::as_str))
        .collect();
    let output = run(at.path(), &args);
    let audit: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    audit["findings"].as_array().expect("findings").clone()
}

#[test]
fn every_mistake_is_caught() {
    let all = files(&fixtures().join("variants"), ".toml");
    assert!(all.len() >= 20, "{} variants", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("UTF-8");
        let variant: Variant =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let findings = findings(&variant);
        for expect in &variant.expect {
            let finding = findings.iter().find(|finding| finding["check"] == *expect.check);
            let Some(finding) = finding else {
                wrong.push(format!("{name}: there is no check {}", expect.check));
                continue;
            };
            let status = finding["status"].as_str().unwrap_or_default();
            if !expect.status.iter().any(|right| right == status) {
                wrong.push(format!("{name}: {} is {status}: {finding:#}", expect.check));
            }
            let said = finding.to_string();
            for word in expect.says.iter().filter(|word| !said.contains(word.as_str())) {
                wrong
                    .push(format!("{name}: {} does not say \"{word}\": {finding:#}", expect.check));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
