//! What a plant really did: one line of JSON, appended in one write.

use std::{fmt::Display, fs::OpenOptions, io::Write};

#[derive(Debug, Default)]
pub(crate) struct Truth {
    fields: Vec<(&'static str, String)>,
}

impl Truth {
    /// The line of a plant.
    pub(crate) fn of(plant: &str) -> Self {
        let mut truth = Self::default();
        truth.text("plant", plant);
        truth
    }

    /// A number, a bool, or other JSON.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Display) {
        self.fields.push((key, value.to_string()));
    }

    /// A number that is not always there.
    pub(crate) fn maybe(&mut self, key: &'static str, value: Option<impl Display>) {
        self.set(key, value.map_or_else(|| "null".into(), |value| value.to_string()));
    }

    pub(crate) fn text(&mut self, key: &'static str, value: &str) {
        self.set(key, quoted(value));
    }

    pub(crate) fn append(&self, path: &str) -> Result<(), String> {
        let line = self.line();
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| format!("{path}: {error}"))
    }

    fn line(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(key, value)| format!("{}:{value}", quoted(key))).collect();
        format!("{{{}}}\n", fields.join(","))
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json() {
        let mut truth = Truth::of("burst");
        truth.set("count", 3);
        truth.maybe("measuring_ns", None::<u64>);
        truth.text("error", "a \"b\"\\\n");
        let line = "{\"plant\":\"burst\",\"count\":3,\"measuring_ns\":null,\
                    \"error\":\"a \\\"b\\\"\\\\\\u000a\"}\n";
        assert_eq!(truth.line(), line);
    }
}
