//! The Kconfig files of a kernel source, read to explain why an option was dropped: what it depends
//! on and which options select it. The kernel's own `conf` decides; this only names the condition.

mod read;

pub use read::read;

use std::collections::BTreeMap;

/// One definition of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Definition {
    /// Conditions that all have to hold, those of menus and `if` around it included.
    depends: Vec<String>,
    /// Condition of its prompt; `None`: no prompt, so that no user sets it.
    prompt: Option<String>,
    /// Whether it belongs to a choice.
    in_choice: bool,
    /// Text of its prompt.
    text: Option<String>,
    /// First lines of its help.
    help: Vec<String>,
}

/// The options of a source.
#[derive(Clone, Debug, Default)]
pub struct KconfigOptions {
    defined: BTreeMap<String, Vec<Definition>>,
    /// By selected option: the options that select it.
    selects: BTreeMap<String, Vec<String>>,
    /// Files that could not be followed.
    unread: Vec<String>,
}

impl KconfigOptions {
    /// Whether a user can set it.
    pub fn has_prompt(&self, name: &str) -> bool {
        self.defined.get(name).is_some_and(|all| all.iter().any(|it| it.prompt.is_some()))
    }

    /// Its prompt and the first lines of its help, as far as they could be read.
    pub fn about(&self, name: &str) -> (Option<String>, Vec<String>) {
        let all = self.defined.get(name).map_or(&[][..], Vec::as_slice);
        let help = all.iter().map(|it| &it.help).find(|help| !help.is_empty());
        (all.iter().find_map(|it| it.text.clone()), help.cloned().unwrap_or_default())
    }

    /// Why an option does not have the value that was asked for, under a configuration.
    pub fn why_not(
        &self,
        name: &str,
        wanted: &str,
        config: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let Some(definitions) = self.defined.get(name) else {
            let all = if self.unread.is_empty() { "" } else { " that could be read" };
            return vec![format!("no Kconfig file of this source{all} defines {name}")];
        };
        if wanted == "n" {
            let of = self.selects.get(name).into_iter().flatten();
            let set: Vec<&str> =
                of.filter(|by| is_set(config, by)).map(String::as_str).take(3).collect();
            return match set.as_slice() {
                [] => vec!["nothing selects it that is set: its default, or its choice".into()],
                set => vec![format!("selected by {}", set.join(", "))],
            };
        }
        let with_prompt = definitions.iter().find(|it| it.prompt.is_some());
        let definition = with_prompt.unwrap_or(&definitions[0]);
        let prompt = definition.prompt.as_deref().filter(|text| !text.is_empty());
        let failed: Vec<&str> = definition
            .depends
            .iter()
            .map(String::as_str)
            .chain(prompt)
            .flat_map(conjuncts)
            .filter(|part| holds(part, config) != Some(true))
            .collect();
        let mut because = Vec::new();
        for part in failed {
            let text = match holds(part, config) {
                Some(false) => format!("depends on {part}, which does not hold"),
                _ => format!("depends on {part}, which only kconfig can compute"),
            };
            let text = format!("{text}{}", self.of_symbol(part));
            if !because.contains(&text) {
                because.push(text);
            }
        }
        if !because.is_empty() {
            return because;
        }
        vec![match with_prompt {
            None => format!("it has no prompt{}", self.of_symbol(name)),
            Some(of) if of.in_choice => "another option of its choice is set".into(),
            Some(_) => "its conditions hold; a range, or what selects it, decides".into(),
        }]
    }

    /// What a user has to know of an option that has no prompt.
    fn of_symbol(&self, name: &str) -> String {
        let Some(definitions) = self.defined.get(name) else {
            let is_plain = !name.is_empty() && name.chars().all(is_name);
            let known = is_plain && self.unread.is_empty();
            return if known { "; this source does not define it".into() } else { String::new() };
        };
        if definitions.iter().any(|it| it.prompt.is_some()) {
            return String::new();
        }
        match self.selects.get(name).map(Vec::as_slice) {
            None | Some([]) => "; nothing in this source selects it for this architecture".into(),
            Some(by) => {
                let names: Vec<&str> = by.iter().map(String::as_str).take(3).collect();
                format!("; selected by {}", names.join(", "))
            }
        }
    }
}

// Conditions of Kconfig: `A && !B`, `(A || B)`, `A = "x"`; Documentation/kbuild/kconfig-language.

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_set(config: &BTreeMap<String, String>, name: &str) -> bool {
    matches!(config.get(name).map(String::as_str), Some("y" | "m"))
}

/// The parts that `&&` joins at the top.
fn conjuncts(text: &str) -> Vec<&str> {
    let text = without_parentheses(text);
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'&' if depth == 0 && bytes.get(at + 1) == Some(&b'&') => {
                parts.push(text[from..at].trim());
                from = at + 2;
            }
            // || binds weaker: the whole is one part.
            b'|' if depth == 0 => return vec![text],
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Without parentheses around the whole.
fn without_parentheses(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        let mut depth = 0;
        let closes = inner.chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth < 0
        });
        if closes {
            break;
        }
        text = inner.trim();
    }
    text
}

/// Whether it holds; `None`: it has what only kconfig computes. `m` holds as `y` does.
fn holds(text: &str, config: &BTreeMap<String, String>) -> Option<bool> {
    if text.contains("$(") {
        return None;
    }
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0, config };
    let holds = parser.any()?;
    (parser.at == tokens.len()).then_some(holds)
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let used = if ["&&", "||", "!=", "<=", ">="].iter().any(|two| rest.starts_with(two)) {
            2
        } else if first == '"' || first == '\'' {
            rest[1..].find(first).map_or(rest.len(), |end| end + 2)
        } else if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..used].to_owned());
        rest = rest[used..].trim_start();
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
    config: &'a BTreeMap<String, String>,
}

impl Parser<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let is = self.tokens.get(self.at).is_some_and(|next| next == token);
        self.at += usize::from(is);
        is
    }

    fn any(&mut self) -> Option<bool> {
        let mut holds = self.all()?;
        while self.takes("||") {
            holds |= self.all()?;
        }
        Some(holds)
    }

    fn all(&mut self) -> Option<bool> {
        let mut holds = self.one()?;
        while self.takes("&&") {
            holds &= self.one()?;
        }
        Some(holds)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("!") {
            return self.one().map(|holds| !holds);
        }
        if self.takes("(") {
            let holds = self.any()?;
            return self.takes(")").then_some(holds);
        }
        let name = self.word()?;
        for sign in ["=", "!=", "<", ">", "<=", ">="] {
            if self.takes(sign) {
                let (one, other) = (self.value(&name), self.word().map(|word| self.value(&word))?);
                return match sign {
                    "=" => Some(one == other),
                    "!=" => Some(one != other),
                    _ => {
                        let one: i64 = one.parse().ok()?;
                        let other: i64 = other.parse().ok()?;
                        Some(match sign {
                            "<" => one < other,
                            ">" => one > other,
                            "<=" => one <= other,
                            _ => one >= other,
                        })
                    }
                };
            }
        }
        Some(match name.as_str() {
            "y" | "m" => true,
            "n" => false,
            name => is_set(self.config, name),
        })
    }

    fn word(&mut self) -> Option<String> {
        let word = self.tokens.get(self.at)?.clone();
        self.at += 1;
        word.starts_with(|c: char| is_name(c) || c == '"' || c == '\'').then_some(word)
    }

    /// A constant, or the value of an option.
    fn value(&self, word: &str) -> String {
        let plain = word.trim_matches(['"', '\'']);
        let is_constant = plain != word
            || matches!(word, "y" | "m" | "n")
            || word.starts_with(|c: char| c.is_ascii_digit());
        match self.config.get(word) {
            _ if is_constant => plain.to_owned(),
            Some(value) => value.trim_matches('"').to_owned(),
            None => "n".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_kconfig_does() {
        let config: BTreeMap<String, String> =
            [("A", "y"), ("M", "m"), ("HZ", "250"), ("S", "\"x\"")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        for (text, wanted) in [
            ("A && M", Some(true)),
            ("A && !M", Some(false)),
            ("B || (A && !B)", Some(true)),
            ("A=y", Some(true)),
            ("M!=m", Some(false)),
            ("HZ >= 1000", Some(false)),
            ("S = \"x\"", Some(true)),
            ("B=n", Some(true)),
            ("$(cc-option,-m)", None),
            ("A &&", None),
            ("A B", None),
        ] {
            assert_eq!(holds(text, &config), wanted, "{text}");
        }
        assert_eq!(conjuncts("(A && (B || C)) "), ["A", "(B || C)"]);
        assert_eq!(conjuncts("A || B && C"), ["A || B && C"]);
        assert_eq!(conjuncts("(A) && (B)"), ["(A)", "(B)"]);
    }
}
