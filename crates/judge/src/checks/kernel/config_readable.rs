//! Can it be told how the kernel is built?
//!
//! Half of the checks of this section ask the build: where it cannot be read they are unknown, and
//! this one says what to do, once.

use rtproof_host::Facts;

use crate::checks::Check;
use crate::checks::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) struct ConfigReadable;

impl Check for ConfigReadable {
    fn id(&self) -> &'static str {
        "kernel-config-readable"
    }

    fn title(&self) -> &'static str {
        "build configuration of the kernel"
    }

    fn why(&self) -> &'static str {
        "a build with debug options or without what real-time needs stays unseen"
    }

    fn source(&self) -> &'static str {
        "init/Kconfig (IKCONFIG_PROC); Documentation/kbuild/kconfig.rst"
    }

    fn impact(&self) -> Impact {
        Impact::Information
    }

    fn judge(&self, facts: &Facts, _: &Intent) -> Finding {
        let config = &facts.kernel.config;
        let draft =
            Draft::of(self, "readable").read(config, |found| format!("{} options", found.len()));
        if config.value().is_some() {
            return draft.good(config.path.clone());
        }
        let text = "run as root, load the module configs (/proc/config.gz), or install the \
                    kernel's file /boot/config-RELEASE";
        draft.remedies([Remedy::Manual { text: text.into() }]).blind(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, Unknown};
    use crate::checks::testing::{good, intent};
    use rtproof_host::Reading;

    #[test]
    fn good_and_unknown() {
        let mut facts = good();
        assert_eq!(ConfigReadable.judge(&facts, &intent()).status, Good);
        facts.kernel.config = Reading::absent("/proc/config.gz, /boot/config-6.1");
        let finding = ConfigReadable.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert_eq!(finding.remedies.len(), 1);
    }
}
