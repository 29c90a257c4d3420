//! `rtproof tune trial`: a boot entry with the plan's kernel parameters or with another kernel,
//! booted once. The entry that boots now is not touched, and comes back by itself when the new one
//! does not come up.

use std::{io::Write, path::PathBuf, process::Stdio};

use anyhow::Context;

use rtproof_host::{
    Root,
    boot::{self, BootChanges, Loader, OwnEntryState, TITLE, Word},
    door::Invalid,
    trusted,
    tune::{ApplyOptions, Change, Item, Journal, Machine},
};
use rtproof_judge::plan::units;
use rtproof_measure::LiveTasks;
use rtproof_render::page::Terminal;
use rtproof_results::tune::{APPLIED, Applied, BootPreview, Made, TrialKernel};
use rtproof_run::{
    parse,
    tune::{
        boot::{of_plan, word},
        kernel::{self, InitrdChoice, KernelSource, PreparedKernel},
        making,
    },
};

use super::{RequestArgs, RootArgs, plan};
use crate::answers::tune;
use crate::exit::TextOutput;
use crate::show::ApplyProgress;
use crate::{exit, open_root};

/// Arguments of `tune trial`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune trial --cpus 2-3
  rtproof tune trial isolcpus=managed_irq,domain,2-3 nohz_full=2-3 --reboot --yes
  rtproof tune trial --only nohz-full,rcu-nocbs --cpus 2-3
  rtproof tune trial --kernel 6.1.0-50-rt-amd64 --reboot
  rtproof tune trial --kernel linux-image-6.12.5-rt_6.12.5-1_amd64.deb
  rtproof tune verify && rtproof tune confirm

The entry is a copy of the one that boots now, beside it. It boots once; the boot after that is the
old one again, unless rtproof tune confirm came. rtproof tune undo removes it to the byte.")]
pub struct Args {
    /// Kernel parameters; default: those of the plan
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,

    /// Boot another kernel than the running one: a version of the boot menu, a .deb package that is
    /// not installed, or the folder of `rtproof kernel build`. Without WORD it gets no parameters
    #[arg(long, value_name = "VERSION|FILE|DIR")]
    pub kernel: Option<PathBuf>,

    /// Initial RAM disk of the package or build: a file, or none; default: made by the
    /// distribution's program, where the entry that is copied has one
    #[arg(long, value_name = "FILE|none", requires = "kernel")]
    pub initrd: Option<PathBuf>,

    /// Take a parameter out, whatever its value
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub without: Vec<String>,

    /// Only parameters that these checks ask for: ids, or sections, joined by commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',', conflicts_with = "words")]
    pub only: Vec<String>,

    /// What the machine is for.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,

    /// Reboot by itself, into the entry of now, unless rtproof tune confirm comes within this time
    /// after the trial's services start; needs systemd
    #[arg(long = "within", value_name = "TIME", value_parser = watched)]
    pub within_ns: Option<u64>,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Make the entry also where the boot loader cannot boot it once: it is chosen by hand in the
    /// boot menu then, and the default stays
    #[arg(long, conflicts_with_all = ["reboot", "within_ns"])]
    pub by_hand: bool,

    /// Reboot into it at once
    #[arg(long, conflicts_with = "root")]
    pub reboot: bool,

    /// Print what was done as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed, a boot loader that cannot be set, a change that could not be
/// made (the others are undone then).
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let asked: Vec<_> = args.words.iter().map(|text| word(text)).collect::<Result<_, _>>()?;
    super::named_checks(&args.only)?;
    let root = open_root(args.at.root.as_deref())?;
    let machine = Machine::new(&root, &LiveTasks)?;
    let mut words: Vec<Word> = asked.iter().map(|asked| Word::set(&asked.parameter)).collect();
    if words.is_empty() && args.without.is_empty() && (args.kernel.is_none() || args.has_plan()) {
        let (_, _, plan) = plan::plan_of(&root, &args.request, &args.only)?;
        refuse_conflicts(&plan)?;
        words = plan.boot.iter().map(of_plan).collect();
    }
    words.extend(args.without.iter().map(Word::remove));
    let source = args.kernel.as_deref().map(KernelSource::of).transpose()?;
    if args.within_ns.is_some() && (source.is_some() || !words.is_empty()) {
        words.push(Word::set(units::TRIAL_WORD));
    }
    let text = TextOutput::new(args.json);
    if words.is_empty() && source.is_none() {
        text.print(|to| writeln!(to, "Nothing to try: the plan has no kernel parameter."))?;
        let none = applied_of(None, Vec::new());
        text.print_json(&tune::written(&none, "boot entry").with(&none))?;
        return Ok(exit::ACCEPTED);
    }
    let (loader, prepared) = match &source {
        None => (boot::detect(&root)?, None),
        Some(source) => {
            let mut loader = kernel::loader(&root, source)?;
            refuse(args, &root, &loader)?;
            let prepared = kernel::prepare(
                &machine,
                &mut loader,
                source,
                &InitrdChoice::of(args.initrd.as_deref()),
            )?;
            (loader, Some(prepared))
        }
    };
    let changes = loader.real_time(&root, &words)?;
    let shown = prepared.as_ref().map(|prepared| prepared.shown.clone());
    show(text, &loader, &changes, shown.as_ref())?;
    refuse(args, &root, &loader)?;
    let then = if loader.no_trial.is_some() { "" } else { " and boot it once" };
    let question = format!("make this entry of {}{then}?", loader.name);
    if !args.yes && !crate::consent(&question)? {
        anyhow::bail!("nothing was changed");
    }
    let watch = args.within_ns.map(|ns| units::trial_changes(ns / 1_000_000_000));
    let what = title(args, &words);
    let kernel = prepared.iter().flat_map(|prepared: &PreparedKernel| &prepared.changes);
    let watch = watch.unwrap_or_default();
    let all = watch.iter().chain(kernel).chain(&changes.entry).chain(&changes.trial);
    let applied = Applied { kernel: shown, ..all_or_none(&machine, what, all)? };
    drop(prepared);
    text.print(|to| {
        rtproof_render::page::applied(to, &applied, &crate::next::root(args.at.root.as_deref()))?;
        next(to, args.reboot, &changes)
    })?;
    text.print_json(&tune::written(&applied, "boot entry").with(&applied))?;
    if args.reboot {
        reboot(&root, changes.reboot.as_deref())?;
    }
    Ok(exit::ACCEPTED)
}

/// Refuses what would leave no way back.
fn refuse(args: &Args, root: &Root, loader: &Loader) -> anyhow::Result<()> {
    if let Some(why) = &loader.no_entry {
        anyhow::bail!("{why}; nothing was changed");
    }
    anyhow::ensure!(
        loader.entry_state(root)? != OwnEntryState::Default,
        "the entry of rtproof is the default of {}: another try would change what boots from now \
         on, with no way back. Nothing was changed. Take it back first: rtproof tune undo --all",
        loader.name
    );
    match &loader.no_trial {
        Some(why) if !args.by_hand => anyhow::bail!(
            "{why}; nothing was changed; to have the entry in the boot menu all the same: rtproof \
             tune trial --by-hand"
        ),
        _ => Ok(()),
    }
}

fn refuse_conflicts(plan: &rtproof_judge::plan::Plan) -> anyhow::Result<()> {
    let Some(conflict) = plan.conflicts.iter().find(|it| it.target.contains("command line")) else {
        return Ok(());
    };
    let checks: Vec<&str> = conflict.requests.iter().map(|(check, _)| check.as_str()).collect();
    anyhow::bail!(
        "{}: {} contradict each other; name the parameters that you want; nothing was changed",
        conflict.target,
        checks.join(", ")
    )
}

impl Args {
    /// Whether parameters are asked for that only a plan has.
    fn has_plan(&self) -> bool {
        let plain = RequestArgs::default();
        !self.only.is_empty() || self.request.title("", &[]) != plain.title("", &[])
    }
}

/// The kernel, and the command line before and after.
fn show(
    text: TextOutput,
    loader: &Loader,
    changes: &BootChanges,
    kernel: Option<&TrialKernel>,
) -> std::io::Result<()> {
    let preview = BootPreview {
        words: Vec::new(),
        now: loader.base.as_ref().map(|base| base.cmdline.clone()),
        then: Some(changes.cmdline.clone()),
        loader: Some(loader.name.clone()),
        entry: loader.no_entry.is_none().then(|| TITLE.to_owned()),
        refused: None,
        printed: changes.printed.clone(),
    };
    text.print(|to| {
        if let Some(kernel) = kernel {
            rtproof_render::page::trial_kernel(to, kernel)?;
        }
        rtproof_render::page::entry_place(to, &preview)?;
        rtproof_render::page::tokens(to, &preview)
    })
}

fn applied_of(journal: Option<(u32, String)>, changes: Vec<Made>) -> Applied {
    let (journal, path) = journal.unzip();
    Applied {
        schema: APPLIED,
        journal,
        path,
        changes,
        rolled_back: false,
        boot_parameters: Vec::new(),
        confirm_within_ns: None,
        kernel: None,
    }
}

/// Title of the journal.
fn title(args: &Args, words: &[Word]) -> String {
    let kernel = args.kernel.as_ref().map(|it| format!(" --kernel {}", it.display()));
    let words: Vec<&str> = words.iter().map(|word| word.parameter.as_str()).collect();
    let title = format!("tune trial{} {}", kernel.unwrap_or_default(), words.join(" "));
    title.trim_end().to_owned()
}

/// Time for a confirmation: long enough to log in and look.
fn watched(text: &str) -> Result<u64, Invalid> {
    match parse::time(text)? {
        ns @ 60_000_000_000..=86_400_000_000_000 => Ok(ns),
        _ => Err("from 1m, to have time to log in, to 1d".into()),
    }
}

/// Makes changes of the boot loader under a journal of their own.
pub(super) fn all_or_none<'a>(
    machine: &Machine<'_>,
    what: String,
    changes: impl Iterator<Item = &'a Change>,
) -> anyhow::Result<Applied> {
    let items: Vec<Item> =
        changes.map(|change| Item { change: change.clone(), checks: Vec::new() }).collect();
    let planned = items.iter().map(|it| Made::of(it.change.clone(), Vec::new(), None)).collect();
    let mut journal = Journal::begin(machine, what, &items)?;
    let options = ApplyOptions { keep_going: false };
    let made = making::apply(machine, &mut journal, &items, options, &mut ApplyProgress::new());
    let made = made.context("the boot entry cannot be made; everything was taken back")?;
    let of = (making::number(&journal), journal.path().to_owned());
    Ok(applied_of(Some(of), making::outcomes(planned, journal.entries(), Some(&made))))
}

fn next(to: &mut Terminal, reboots: bool, changes: &BootChanges) -> std::io::Result<()> {
    rtproof_render::page::note_text(to, &changes.fallback)?;
    let after = "after it came up: rtproof tune verify, then rtproof tune confirm";
    if changes.trial.is_empty() && changes.reboot.is_none() {
        let by_hand = format!("boot, and choose \"{TITLE}\" in the boot menu; {after}");
        return rtproof_render::page::note_text(to, &by_hand);
    }
    let text = match (&changes.reboot, reboots) {
        (_, true) => after.to_owned(),
        (Some(argument), false) => format!("boot it with: reboot '{argument}'; {after}"),
        (None, false) => format!("boot it with: reboot; {after}"),
    };
    rtproof_render::page::note_text(to, &text)
}

pub(crate) fn reboot(root: &Root, argument: Option<&str>) -> anyhow::Result<()> {
    let has_systemd = root.list_dir("/run/systemd/system").value().is_some();
    let mut command = match has_systemd {
        true => {
            let mut command = trusted::command("systemctl")?;
            command.arg("reboot");
            command.args(argument.map(|argument| format!("--reboot-argument={argument}")));
            command
        }
        false => {
            let mut command = trusted::command("reboot")?;
            command.args(argument);
            command
        }
    };
    let status = command.stdin(Stdio::null()).status().context("reboot cannot be run")?;
    anyhow::ensure!(status.success(), "reboot failed; the entry is armed: reboot by hand");
    Ok(())
}
