//! Taking readings away from a machine, one by one or all: what the contracts of the checks and of
//! the questions about an application are tried with.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::Finding;

/// The states that are not a value.
fn blanks(path: &str) -> [Value; 3] {
    [
        json!({ "path": path, "state": "absent" }),
        json!({ "path": path, "state": "denied", "why": "EACCES" }),
        json!({ "path": path, "state": "malformed", "found": "?", "expected": "a number" }),
    ]
}

/// Where readings are in the JSON of facts, and the path each one asked. Inner ones come later.
pub(crate) fn readings(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            if let (Some(Value::String(path)), Some(_)) = (fields.get("path"), fields.get("state"))
            {
                found.push((at.to_owned(), path.clone()));
            }
            for (key, value) in fields {
                readings(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                readings(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// The facts, or a scene, with the readings at these places replaced by blank number `which`.
pub(crate) fn blanked<T: Serialize + DeserializeOwned>(
    facts: &T,
    places: &[(String, String)],
    which: usize,
) -> T {
    let mut value = serde_json::to_value(facts).unwrap();
    for (at, path) in places {
        // An inner reading went with the one round it.
        if let Some(place) = value.pointer_mut(at) {
            *place = blanks(path)[which].clone();
        }
    }
    serde_json::from_value(value).unwrap()
}

/// Whether evidence names a path, also as `cpu{2-3}` or joined to others by `, `.
pub(crate) fn cites(finding: &Finding, path: &str) -> bool {
    finding.evidence.iter().any(|evidence| {
        evidence.path == path || spread(&evidence.path).iter().any(|one| one == path)
    })
}

/// `cpu{2-3}/x` as `cpu2/x` and `cpu3/x`.
fn spread(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.into()];
    };
    let Some((list, after)) = rest.split_once('}') else {
        return vec![path.into()];
    };
    let numbers = rtproof_host::CpuList::parse(list, None).unwrap();
    numbers.iter().map(|number| format!("{before}{number}{after}")).collect()
}
