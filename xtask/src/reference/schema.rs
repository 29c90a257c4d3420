//! docs/reference/*.schema.json: the shape of what `--json` prints.

use anyhow::Result;
use rtproof::Form;

/// The page of a form, made from the type that is printed.
pub(crate) fn page(form: &Form) -> Result<String> {
    Ok(serde_json::to_string_pretty(&(form.schema)())? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_schema() {
        let form = Form {
            id: "rtproof/finding/1",
            page: "finding",
            schema: || schemars::schema_for!(rtproof_judge::Finding),
        };
        let schema: serde_json::Value = serde_json::from_str(&page(&form).unwrap()).unwrap();
        assert_eq!(schema["title"], "Finding");
        assert!(schema["properties"]["summary"].is_object());
    }
}
