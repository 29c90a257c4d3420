//! The Kconfig files of a kernel source, read to explain why an option was dropped: what it depends
//! on and who selects it. The kernel's own `conf` decides; this only names the condition.

mod condition;
mod read;

use std::collections::BTreeMap;

use condition::is_set;
pub use read::read;

/// One definition of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Definition {
    /// Conditions that all have to hold, those of menus and `if` around it included.
    depends: Vec<String>,
    /// Condition of its prompt; `None`: no prompt, so that no user sets it.
    prompt: Option<String>,
    /// Whether it stands in a choice.
    in_choice: bool,
    /// Text of its prompt.
    text: Option<String>,
    /// First lines of its help.
    help: Vec<String>,
}

/// The options of a source.
#[derive(Clone, Debug, Default)]
pub struct Options {
    defined: BTreeMap<String, Vec<Definition>>,
    /// By the option that is selected: who selects it.
    selects: BTreeMap<String, Vec<String>>,
    /// Files that could not be followed.
    unread: Vec<String>,
}

impl Options {
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
    pub fn because(
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
            .flat_map(condition::conjuncts)
            .filter(|part| condition::holds(part, config) != Some(true))
            .collect();
        let mut because = Vec::new();
        for part in failed {
            let text = match condition::holds(part, config) {
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
            let is_plain = !name.is_empty() && name.chars().all(condition::is_name);
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
