//! docs/reference/*.schema.json: the shape of what `--json` prints.

use anyhow::Result;

/// The page, from the type that is printed.
pub(crate) fn page<T: schemars::JsonSchema>() -> Result<String> {
    let schema = schemars::schema_for!(T);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_schema() {
        let schema = page::<rtproof_judge::Finding>().unwrap();
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["title"], "Finding");
        assert!(schema["properties"]["summary"].is_object());
    }
}
