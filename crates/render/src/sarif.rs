//! Findings as SARIF 2.1.0 (OASIS), for code scanning: every check is a rule, every finding that is
//! not settled a result. What the user left out is suppressed, with the reason.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use rtproof_host::text;
use rtproof_judge::{
    Finding, Status, application, checks, report::MachineSummary, rules::Compliance,
};
use rtproof_results::launch::{Breach, Rules};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub fn log(machine: &MachineSummary, findings: &[Finding]) -> Value {
    let rules: Vec<Value> = findings.iter().map(rule).collect();
    let results: Vec<Value> = findings.iter().enumerate().map(|(at, f)| result(at, f)).collect();
    let driver = json!({
        "name": "rtproof",
        "version": env!("CARGO_PKG_VERSION"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    let properties = json!({
        "hostname": machine.hostname,
        "kernel": machine.kernel,
        "architecture": machine.arch,
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": properties,
        }],
    })
}

fn rule(finding: &Finding) -> Value {
    let id = &finding.check;
    let check = checks::by_id(id).or_else(|| application::by_id(id));
    let title = check.map_or(id.as_str(), |check| check.title);
    json!({
        "id": finding.check,
        "shortDescription": { "text": title },
        "fullDescription": { "text": finding.why },
        "help": { "text": format!("Wanted: {}. Source: {}", finding.wanted, finding.source) },
    })
}

/// Level and kind of a status (section 3.27.9 and 3.27.10): a level other than `none` is for
/// results of kind `fail` alone.
const fn level(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Bad => ("error", "fail"),
        Status::Doubtful => ("warning", "fail"),
        Status::Unknown => ("none", "open"),
        Status::Good => ("none", "pass"),
        Status::NotApplicable => ("none", "notApplicable"),
    }
}

fn result(index: usize, finding: &Finding) -> Value {
    let (level, kind) = level(finding.status);
    let fixes: Vec<String> = finding.remedies.iter().map(|r| format!("Fix: {r}.")).collect();
    let text = [std::slice::from_ref(&finding.summary), &fixes].concat().join(" ");
    let location =
        |path: &str| json!({ "physicalLocation": { "artifactLocation": { "uri": uri(path) } } });
    let is_path = |path: &&str| path.starts_with('/') && !path.contains(", ");
    let paths = finding.evidence.iter().map(|evidence| evidence.path.as_str()).filter(is_path);
    let locations: Vec<Value> = paths.map(location).collect();
    let mut result = json!({
        "ruleId": finding.check,
        "ruleIndex": index,
        "level": level,
        "kind": kind,
        "message": { "text": text },
        "locations": locations,
    });
    if let Some(reason) = &finding.skipped {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

/// A path as a URI: what is not allowed in one is escaped (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

// Findings as JUnit XML, for CI: a suite per section, a case per check. What fails is the user's
// choice (`--fail-on`); what does not apply, is unknown or is left out is skipped.

pub fn suites(machine: &MachineSummary, findings: &[Finding], fail_on: Option<Status>) -> String {
    let host = machine.hostname.as_deref().unwrap_or("unknown");
    let kernel = machine.kernel.as_deref().unwrap_or("unknown");
    let counts = Counts::of(findings.iter(), fail_on);
    let markup = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="rtproof check" tests=(counts.tests) failures=(counts.failures) errors="0" {
            (PreEscaped("\n"))
            @for (name, of) in by_section(findings) {
                (suite(name, &of, host, kernel, fail_on))
            }
        }
    };
    let mut text = text::harmless_text(&markup.into_string());
    text.retain(is_xml);
    text.push('\n');
    text
}

/// The rules of a real-time program: a case per rule. One that is broken fails; one of which it is
/// not known is an error, as unknown is not a pass.
pub fn rules(command: &str, program: &str, of: &Rules) -> String {
    let count = |answer| of.rules.iter().filter(|it| it.answer == answer).count();
    let (failures, errors) = (count(Compliance::Broken), count(Compliance::NotKnown));
    let markup = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name=(command) tests=(of.rules.len()) failures=(failures)
            errors=(errors) {
            testsuite name=(program) tests=(of.rules.len()) failures=(failures) errors=(errors) {
                @for rule in &of.rules {
                    testcase classname="rules" name=(rule.rule.id()) {
                        @match rule.answer {
                            Compliance::Kept => {},
                            Compliance::NotKnown => {
                                error message=(rule.why.as_deref().unwrap_or("")) {}
                            },
                            Compliance::Broken => failure message=(rule.title) {
                                @for it in of.breaches.iter().filter(|it| it.rule == rule.rule) {
                                    (breach(it)) "\n"
                                }
                            },
                        }
                    }
                    "\n"
                }
            }
        }
    };
    let mut text = text::harmless_text(&markup.into_string());
    text.retain(is_xml);
    text.push('\n');
    text
}

fn breach(it: &Breach) -> String {
    let at = it.at.as_ref().map_or_else(String::new, |at| {
        let (file, line) = (at.file.as_deref().unwrap_or("?"), at.line.unwrap_or(0));
        format!(" at {} ({file}:{line})", at.function.as_deref().unwrap_or("?"))
    });
    let (thread, tid, what, count) = (&it.thread, it.tid, &it.what, it.count);
    format!("{thread}:{tid}: {what}{at}, {count} times; instead: {}", it.advice)
}

/// Whether a finding fails an audit that fails from a status on; `None`: none does.
pub fn fails(finding: &Finding, from: Option<Status>) -> bool {
    // Worse is less.
    finding.skipped.is_none() && from.is_some_and(|from| finding.status <= from)
}

/// Whether XML 1.0 allows a character (section 2.2).
const fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Findings by the section of their check; those of the application and the trials come last.
fn by_section(findings: &[Finding]) -> Vec<(&'static str, Vec<&Finding>)> {
    let mut groups: Vec<(&'static str, Vec<&Finding>)> = Vec::new();
    for section in checks::sections() {
        let is_in =
            |finding: &&Finding| section.checks.iter().any(|check| check.id == finding.check);
        groups.push((section.name, findings.iter().filter(is_in).collect()));
    }
    for (name, start) in [("application", "app-"), ("proof", "proof-")] {
        let is_in = |finding: &&Finding| finding.check.starts_with(start);
        groups.push((name, findings.iter().filter(is_in).collect()));
    }
    groups.retain(|(_, of)| !of.is_empty());
    groups
}

struct Counts {
    tests: usize,
    failures: usize,
    skipped: usize,
}

impl Counts {
    fn of<'a>(findings: impl Iterator<Item = &'a Finding>, fail_on: Option<Status>) -> Self {
        let mut counts = Self { tests: 0, failures: 0, skipped: 0 };
        for finding in findings {
            counts.tests += 1;
            counts.failures += usize::from(fails(finding, fail_on));
            counts.skipped += usize::from(skip(finding, fail_on).is_some());
        }
        counts
    }
}

/// Why a case is skipped; `None`: it is not.
fn skip(finding: &Finding, fail_on: Option<Status>) -> Option<String> {
    if fails(finding, fail_on) {
        return None;
    }
    if let Some(reason) = &finding.skipped {
        return Some(format!("left out: {reason}"));
    }
    match finding.status {
        Status::Unknown => Some(format!("unknown: {}", finding.summary)),
        Status::NotApplicable => Some(format!("not applicable: {}", finding.summary)),
        _ => None,
    }
}

fn suite(name: &str, of: &[&Finding], host: &str, kernel: &str, fail_on: Option<Status>) -> Markup {
    let Counts { tests, failures, skipped } = Counts::of(of.iter().copied(), fail_on);
    html! {
        testsuite name=(name) hostname=(host) tests=(tests) failures=(failures) errors="0"
            skipped=(skipped) time="0" {
            (PreEscaped("\n"))
            properties { property name="kernel" value=(kernel) {} }
            (PreEscaped("\n"))
            @for finding in of {
                testcase classname={ "rtproof." (name) } name=(finding.check) time="0" {
                    (outcome(finding, fail_on))
                }
                (PreEscaped("\n"))
            }
        }
        (PreEscaped("\n"))
    }
}

fn outcome(finding: &Finding, fail_on: Option<Status>) -> Markup {
    let (word, _) = crate::page::word(finding.status);
    html! {
        @if fails(finding, fail_on) {
            failure type=(word) message=(finding.summary) { (details(finding)) }
        } @else if let Some(why) = skip(finding, fail_on) {
            skipped message=(why) {}
        } @else if finding.status == Status::Doubtful {
            system-out { (finding.summary) "\n" (details(finding)) }
        }
    }
}

fn details(finding: &Finding) -> String {
    let mut lines = vec![format!("wanted: {}", finding.wanted)];
    lines.extend(finding.evidence.iter().map(|e| format!("saw: {}: {}", e.path, e.value)));
    lines.push(format!("why: {}", finding.why));
    lines.extend(finding.remedies.iter().map(|remedy| format!("fix: {remedy}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use rtproof_judge::checks::testing;

    use super::*;

    fn findings() -> Vec<Finding> {
        let mut facts = testing::good();
        facts.memory.thp_enabled = rtproof_host::Reading::known("/sys/x {y}", "always".into());
        let mut intent = testing::intent();
        intent.skip.insert("swap".into(), "wanted".into());
        checks::judge_all(&facts, &intent)
    }

    #[test]
    fn a_finding_is_a_result_of_its_rule() {
        let findings = findings();
        let machine = MachineSummary::of(&testing::good());
        let log = log(&machine, &findings);
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), findings.len());
        for (at, result) in results.iter().enumerate() {
            assert_eq!(run["tool"]["driver"]["rules"][at]["id"], result["ruleId"]);
            assert_eq!(result["kind"] == "fail", result["level"] != "none");
        }
        let of = |id: &str| results.iter().find(|result| result["ruleId"] == id).unwrap();
        let thp = of("thp");
        assert_eq!((&thp["level"], &thp["kind"]), (&json!("error"), &json!("fail")));
        assert_eq!(
            thp["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "file:///sys/x%20%7By%7D"
        );
        assert_eq!(of("swap")["suppressions"][0]["justification"], "wanted");
    }
}

#[cfg(test)]
mod junit_tests {
    use rtproof_judge::checks::testing;

    use super::*;

    #[test]
    fn statuses_become_outcomes() {
        let mut facts = testing::good();
        let odd = "always\u{1b}[2J <&\">".to_owned();
        facts.memory.thp_enabled = rtproof_host::Reading::known("/sys/x", odd);
        let mut intent = testing::intent();
        intent.skip.insert("swap".into(), "hibernation".into());
        let findings = checks::judge_all(&facts, &intent);
        let machine = MachineSummary::of(&facts);
        let text = suites(&machine, &findings, Some(Status::Unknown));
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
        assert!(text.contains("skipped message=\"left out: hibernation\""), "{text}");
        assert!(text.contains("always\\x1b[2J") && text.contains("&lt;&amp;"), "{text}");
        assert!(text.contains(&format!("tests=\"{}\"", findings.len())));
        let failing =
            findings.iter().filter(|finding| fails(finding, Some(Status::Unknown))).count();
        assert!(failing > 0 && text.matches("<failure ").count() == failing, "{text}");
        assert!(text.contains(&format!("failures=\"{failing}\"")));
        let never = suites(&machine, &findings, None);
        assert!(!never.contains("<failure"));
    }
}
