//! Will the next boot have the parameters of this one?
//!
//! A parameter typed in at the boot loader's prompt is gone with the next boot; one in a file is
//! not in force before it. Tools that write the wrong file, or forget to run update-grub, show here
//! and nowhere else. Only parameters about latency are compared.

use rtproof_host::{Facts, facts::platform::boot::relevant};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent, Remedy, When};

/// Most parameters in a summary.
const NAMED_MAX: usize = 4;

pub(super) static CHECK: Check = Check {
    id: "boot-persistence",
    title: "boot parameters in force and those of the next boot",
    why: "what is only in force is gone with the next boot, and what is only in the boot entry is \
          not in force",
    source: "Boot Loader Specification (uapi-group.org); GNU GRUB manual (Simple configuration); \
             redhat-performance/tuned issues 98 and 528",
    when: When::Boot,
    wanted: Wanted::Text("the same"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let (cmdline, boot) = (&facts.kernel.cmdline, &facts.platform.boot);
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let shown = |words: &[String]| match words {
        [] => "no parameter about latency".to_owned(),
        words => words.join(" "),
    };
    let now = relevant(line);
    let draft = draft.read(cmdline, |_| shown(&now)).read(boot, |boot| shown(&boot.parameters));
    let Some(next) = boot.value() else {
        return draft.blind(boot);
    };
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|word| !those.contains(word)).cloned().collect()
    };
    let (gone, new) = (only(&now, &next.parameters), only(&next.parameters, &now));
    if gone.is_empty() && new.is_empty() {
        return draft.good(match now.len() {
            0 => "no parameter about latency, now or then".to_owned(),
            n => format!("the same: {}", text::count(n, "parameter")),
        });
    }
    let mut parts = Vec::new();
    if !gone.is_empty() {
        parts.push(format!("not in {}: {}", boot.path, text::first_few(&gone, NAMED_MAX)));
    }
    if !new.is_empty() {
        parts.push(format!("not in force: {}", text::first_few(&new, NAMED_MAX)));
    }
    let mut remedies: Vec<Remedy> =
        gone.into_iter().map(|parameter| Remedy::Boot { parameter }).collect();
    if !new.is_empty() {
        let text = match next.is_source {
            true => "run update-grub or grub2-mkconfig, and boot",
            false => "boot",
        };
        remedies.push(Remedy::Manual { text: text.into() });
    }
    draft.remedies(remedies).doubtful(parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::{Reading, facts::platform::boot::NextBoot};

    fn with(now: &str, next: &[&str]) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, now);
        let parameters = next.iter().map(|&word| word.to_owned()).collect();
        let next = NextBoot { is_source: true, parameters };
        facts.platform.boot = Reading::known("/etc/default/grub", next);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn both_directions() {
        assert_eq!(with("quiet", &[]).status, Good);
        assert_eq!(
            with("nohz-full=2 quiet isolcpus=2", &["isolcpus=2", "nohz_full=2"]).status,
            Good
        );
        let finding = with("isolcpus=2 quiet", &["isolcpus=3"]);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "not in /etc/default/grub: isolcpus=2; not in force: isolcpus=3"
        );
        assert_eq!(finding.remedies[0], Remedy::Boot { parameter: "isolcpus=2".into() });
    }

    #[test]
    fn no_entry_is_unknown() {
        let mut facts = good();
        facts.platform.boot = Reading::absent("/boot/grub/grub.cfg, /etc/default/grub");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
