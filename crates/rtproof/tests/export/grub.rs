//! GRUB's drop-in: read by the shell as update-grub reads it, to the exact words.

use std::{fs, process::Command};

use rtproof_judge::plan::BootWord;

use super::{
    sample::{Sample, because},
    tools::{self, exported, ok, program, written},
};

/// What the variables hold once the drop-in is read, word by word in brackets.
fn sourced(drop_in: &str, linux: &str, default: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("90-rtproof.cfg");
    fs::write(&path, drop_in).expect("a file");
    // As grub-mkconfig does it: a plain source under set -e, then the variables pasted in.
    let script = format!(
        "set -e\nGRUB_CMDLINE_LINUX={}\nGRUB_CMDLINE_LINUX_DEFAULT={}\n. {}\n\
         printf '[%s][%s]' \"$GRUB_CMDLINE_LINUX\" \"$GRUB_CMDLINE_LINUX_DEFAULT\"",
        quoted(linux),
        quoted(default),
        path.display()
    );
    ok(Command::new("sh").args(["-c", &script]))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn drop_in(exported: &rtproof_run::tune::export::Exported) -> String {
    let path = "root/etc/default/grub.d/90-rtproof.cfg";
    exported.files.iter().find(|file| file.path == path).expect(path).content.clone()
}

/// A plan with these words alone.
fn with(words: &[(&str, bool)]) -> String {
    let mut sample = Sample::empty();
    let word = |&(parameter, removes): &(&str, bool)| BootWord {
        parameter: parameter.to_owned(),
        removes,
        reason: because("nohz-full"),
    };
    sample.plan.boot = words.iter().map(word).collect();
    drop_in(&tools::of("systemd", &sample.source()))
}

#[test]
fn no_letter_is_left_behind_a_word() {
    // rt-conf wrote `rcu_nocbs=2-3\n` in a string where a backslash is a backslash.
    let words = sourced(&with(&[("isolcpus=2-3", false), ("rcu_nocbs=2-3", false)]), "", "quiet");
    assert_eq!(words, "[][quiet isolcpus=2-3 rcu_nocbs=2-3]");
}

#[test]
fn words_are_not_glued_to_those_that_are_there() {
    // tuned#268 booted with `console=ttyS0,115200n8spectre_v2=off`.
    let console = "quiet console=ttyS0,115200n8";
    let words = sourced(&with(&[("nohz_full=2-3", false)]), "", console);
    assert_eq!(words, format!("[][{console} nohz_full=2-3]"));
    for empty in ["", " "] {
        let words = sourced(&with(&[("nohz_full=2-3", false)]), "", empty);
        assert_eq!(words.trim_start_matches(['[', ']', ' ']), "nohz_full=2-3]");
    }
}

#[test]
fn a_word_takes_the_place_of_its_name_and_of_no_other() {
    let drop_in = with(&[("isolcpus=domain,2-3", true), ("idle", true), ("rcu_nocbs=2-3", true)]);
    let words = sourced(
        &drop_in,
        "isolcpus=1 root=/dev/sda1",
        "quiet  isolcpus=4-N isolcpus_x=1 idle=poll rcu-nocbs=1 idle nohz=on * $x dyndbg=\"a +p\"",
    );
    assert_eq!(
        words,
        "[root=/dev/sda1][quiet isolcpus_x=1 nohz=on * $x dyndbg=\"a +p\" isolcpus=domain,2-3 \
         rcu_nocbs=2-3]"
    );
}

#[test]
fn what_the_shell_or_grub_would_read_is_never_in_it() {
    for bad in ["a=$(id)", "a=`id`", "a=\"b", "a=b c", "a=\nb", "a;b", "a=\\", "a=&b", "", "a=#{x}"]
    {
        let mut sample = Sample::empty();
        let reason = because("nohz-full");
        let parameter = bad.to_owned();
        sample.plan.boot.push(BootWord { parameter, removes: false, reason });
        let exported = tools::of("systemd", &sample.source());
        assert_eq!(exported.missed.len(), 1, "{bad:?}");
        assert!(!exported.files.iter().any(|file| file.path.contains("grub")), "{bad:?}");
    }
}

#[test]
fn the_rich_plan_s_words_are_grub_s() {
    let drop_in = drop_in(&exported("systemd"));
    let all = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 \
               skew_tick=1";
    assert_eq!(sourced(&drop_in, "", "quiet idle=poll"), format!("[][quiet {all}]"));
    let Some(check) = program("grub-script-check") else { return };
    // The line that grub-mkconfig makes of them, in GRUB's own language.
    let folder = written(&exported("systemd"));
    let line = folder.path().join("line.cfg");
    fs::write(&line, format!("menuentry 'x' {{\n\tlinux /vmlinuz quiet {all}\n}}\n"))
        .expect("a file");
    let libraries = tools::unpacked().join("lib/x86_64-linux-gnu");
    ok(Command::new(check).env("LD_LIBRARY_PATH", libraries).arg(&line));
}
