//! grub.cfg and what goes with it.

use super::{
    env::Environment,
    script::{self, Script},
};
use crate::boot::{storage, view::View};

/// grub.cfg and what goes with it.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub folder: String,
    pub text: String,
    pub(super) script: Script,
    /// What GRUB keeps between boots.
    pub environment: Environment,
}

impl Config {
    pub(crate) fn path(&self) -> String {
        format!("{}/grub.cfg", self.folder)
    }

    pub(crate) fn custom(&self) -> String {
        format!("{}/custom.cfg", self.folder)
    }

    /// What `default` is set to when no boot was chosen once: variables put in, empty for the
    /// first.
    pub(super) fn default_spec(&self, custom: &Script) -> String {
        let statements = self.script.top.iter().chain(&custom.top);
        let values = statements.filter_map(script::Statement::assignment);
        let mut defaults =
            values.filter(|(name, value)| *name == "default" && !value.contains("next_entry"));
        let value = defaults.next_back().map_or("0", |(_, value)| value);
        match value {
            "${saved_entry}" | "$saved_entry" => {
                self.environment.get("saved_entry").unwrap_or_default()
            }
            value => value.to_owned(),
        }
    }

    /// Whether grub.cfg takes a default from the environment.
    pub(crate) fn is_saved_default(&self) -> bool {
        let values = self.script.top.iter().filter_map(script::Statement::assignment);
        let mut defaults = values.filter(|(name, _)| *name == "default");
        defaults.any(|(_, value)| ["${saved_entry}", "$saved_entry"].contains(&value))
    }

    /// Whether grub.cfg reads custom.cfg after it has set the default.
    pub(crate) fn reads_custom(&self) -> bool {
        let mut is_after = false;
        for statement in &self.script.top {
            if statement.assignment().is_some_and(|(name, _)| name == "default") {
                is_after = false;
            }
            let is_source = ["source", "."].contains(&statement.command());
            if is_source && statement.words.iter().any(|word| word.text.ends_with("/custom.cfg")) {
                is_after = true;
            }
        }
        is_after
    }

    /// Why a choice for one boot cannot be made safely; `None` when it can.
    pub(crate) fn no_trial(&self, view: &View<'_>) -> Option<String> {
        let path = self.path();
        let has = |command: &str, word: &str| {
            self.script.top.iter().any(|statement| {
                statement.command() == command
                    && (word.is_empty() || statement.words.iter().any(|known| known.text == word))
            })
        };
        let takes = self.script.top.iter().filter_map(script::Statement::assignment);
        let takes = takes.into_iter().any(|assignment| assignment == ("default", "${next_entry}"));
        if !takes || !has("load_env", "") || !has("save_env", "next_entry") {
            return Some(format!(
                "{path} does not look at next_entry, so an entry cannot be booted once; make it \
                 anew with update-grub or grub2-mkconfig"
            ));
        }
        if let Some(why) = &self.environment.unusable {
            return Some(why.clone());
        }
        storage::why_grub_cannot_write(view.root(), &self.environment.path)
    }
}
