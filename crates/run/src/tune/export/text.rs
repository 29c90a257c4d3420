//! Text in other programs' languages: comments, and words quoted so that they mean themselves.

use rtproof_judge::{plan::Reason, units};

use super::format::Source;

/// Whether a line of a configuration file can hold it.
pub(super) fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// As one line, control characters made blanks.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The head of a file, as comments: who made it, for which machine.
pub(super) fn head(source: &Source<'_>, format: &str) -> String {
    let mut head = format!(
        "# Made by rtproof {} (rtproof tune export --format {format}); make it anew rather than \
         edit it.\n# For {}",
        env!("CARGO_PKG_VERSION"),
        one_line(source.machine),
    );
    let cpus = |title: &str, cpus: &rtproof_host::CpuList| match cpus.is_empty() {
        true => String::new(),
        false => format!("; {title} {}", units::cpus(cpus)),
    };
    head += &cpus("real-time", source.realtime);
    head += &cpus("housekeeping", source.housekeeping);
    head + ".\n"
}

/// Why, as one line: the checks, the reason, what it costs.
pub(super) fn why(reason: &Reason) -> String {
    let sentence = |text: &str| format!("{}.", text.trim_end_matches('.'));
    let mut text = sentence(&format!("{}: {}", reason.checks.join(", "), reason.why));
    for (name, of) in [("Costs", &reason.trade_off), ("RISK", &reason.risk)] {
        text += &of.as_ref().map_or_else(String::new, |of| format!(" {name}: {}", sentence(of)));
    }
    one_line(&text)
}

/// A word for the shell, as it is where it needs no quotes.
pub(super) fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+=@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A string for YAML that Ansible takes as it is: JSON's strings are YAML's, and what looks like a
/// template is marked as none.
pub(super) fn yaml(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let is_template = ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark));
    if is_template { format!("!unsafe {quoted}") } else { quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_themselves() {
        assert_eq!(shell("/sys/a-b:0"), "/sys/a-b:0");
        assert_eq!(shell(""), "''");
        assert_eq!(shell("it's $x"), r"'it'\''s $x'");
        assert_eq!(yaml("a\"b: {"), r#""a\"b: {""#);
        assert_eq!(yaml("{{ x }}"), r#"!unsafe "{{ x }}""#);
    }
}
