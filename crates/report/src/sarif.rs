//! Findings as SARIF 2.1.0 (OASIS), for code scanning: every check is a rule, every finding that is
//! not settled a result. What the user left out is suppressed, with the reason.

use rtproof_judge::{Finding, Status, application, checks, report::Machine};
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub fn log(machine: &Machine, findings: &[Finding]) -> Value {
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
        let machine = Machine::of(&testing::good());
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
