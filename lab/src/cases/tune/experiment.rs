//! `rtproof experiment boots` over real reboots, with a power cut while a boot is measured.

use anyhow::{Context, Result};
use serde_json::Value;

use super::boot::same_files;
use super::tracking::script;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

const WORDS: [&str; 2] = ["nohz_full=1", "rcu_nocbs=1"];

/// The order is random by pairs, so that each boot finds out which one it is. Two pairs of the
/// twelve boots that an answer takes: each boot is most of a minute, and an emulated machine has
/// no answer.
const RESUME: &str = "cat /proc/cmdline >/host/cmdline
     run resume rtproof experiment resume
     cp /var/lib/rtproof/experiment/state.json /host/
     sync; echo reboot >/host/then";

/// The third measurement loses its power.
const CUT: &str = "cat /proc/cmdline >/host/cmdline
     records() { ls /var/lib/rtproof/experiment/*.rtproof | wc -l; }
     before=$(records)
     rtproof experiment resume >/host/cut.out 2>&1 &
     until [ $(records) -gt $before ]; do sleep 0.2; done
     sleep 3
     sync
     cue cut
     sleep 60";

const END: &str = "cat /proc/cmdline >/host/cmdline
     run resume rtproof experiment resume
     cp /var/lib/rtproof/experiment/state.json /host/
     run end rtproof experiment end
     sums after
     sync; echo reboot >/host/then";

pub(super) fn cases() -> Vec<Case> {
    let mut case = Case::new(
        "experiment/boots",
        "boots with and without parameters, measured by pairs, resumed after each reboot and after \
         a power cut; at the end /boot and /etc are as before to the byte",
        Machine::grub(),
    )
    .tier(Tier::Three)
    .limit_s(400)
    .script(script(&format!(
        "sums before; cat /proc/cmdline >/host/cmdline
         run begin rtproof experiment boots {} --cpus 1 --boots 6 --slice 5s --load idle --yes
         cp /var/lib/rtproof/experiment/state.json /host/
         sync; echo reboot >/host/then",
        WORDS.join(" ")
    )));
    for _ in 0..2 {
        case = case.then_again().script(RESUME);
    }
    case = case.then_again().script(CUT).on("cut", |guest| guest.power_cut()).ends_by_itself();
    for _ in 0..2 {
        case = case.then_again().script(RESUME);
    }
    case = case
        .then_again()
        .script(script(END))
        .then_again()
        .script("cat /proc/cmdline >/host/cmdline; run again rtproof experiment resume")
        .expect(resumed)
        .mutation("nothing is ended", "files that differ", |case| {
            // Not all of the way: what one boot leaves is enough.
            case.boots.drain(1..6);
            let script = &mut case.boots[1].script;
            *script = script.replace("run end rtproof", "run end echo");
        });
    vec![case]
}

fn resumed(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    same_files(seen, expect, "before", "after")?;
    expect.equal("begin: exit code", seen.rc("begin")?, 0);
    let read = |boot: usize, name: &str| -> Result<String> {
        let path = seen.boots().get(boot).context("too few boots")?.share.join(name);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let state =
        |boot: usize| -> Result<Value> { Ok(serde_json::from_str(&read(boot, "state.json")?)?) };
    let first = state(0)?;
    let order: Vec<bool> =
        first["order"].as_array().into_iter().flatten().filter_map(Value::as_bool).collect();
    expect.equal("boots planned", order.len(), 12);
    // Which boots are measured follows from the order: after the cut the machine comes up without.
    let mut at = 0;
    for boot in 1..=6 {
        let has = WORDS.iter().all(|word| read(boot, "cmdline").is_ok_and(|l| l.contains(word)));
        let wanted = order.get(at) == Some(&true);
        let is_after_cut = boot == 4;
        let what = format!("boot {boot}: parameters");
        expect.equal(&what, has, wanted && !is_after_cut);
        if boot == 3 {
            continue;
        }
        let code = read(boot, "resume.rc")?;
        expect.equal(&format!("boot {boot}: resume"), code.trim(), "0");
        let told = read(boot, "resume.out")?;
        if wanted && is_after_cut {
            expect.contains("after the cut: told", &told, "was not measured; chosen again");
        } else {
            at += 1;
        }
        let measured = state(boot)?["boots"].as_array().map_or(0, Vec::len);
        expect.equal(&format!("boot {boot}: measured so far"), measured, at);
    }
    let last = state(6)?;
    let boots = last["boots"].as_array().map_or(&[][..], Vec::as_slice);
    expect.that("whole pairs", "2 or more", boots.len() >= 4, boots.len());
    for (number, boot) in boots.iter().enumerate() {
        let what = format!("measured {number}");
        expect.equal(&format!("{what}: with"), boot["with"].as_bool(), order.get(number).copied());
        expect.within(
            &format!("{what}: wake-ups in 5 s"),
            boot["scheduled"].as_i64().unwrap_or(0),
            4_000..=5_100,
        );
    }
    let end = read(6, "end.out")?;
    println!("{}", read(0, "begin.out")? + &end);
    seen.keep("experiment-boots.txt", &(read(0, "begin.out")? + &read(1, "resume.out")? + &end))?;
    // Two pairs say nothing: that is what it has to say.
    expect.equal("end: exit code", seen.rc("end")?, 3);
    expect.contains("end: table", &end, &WORDS.join(" "));
    expect.contains("end: decision", &end, "cannot decide");
    expect.equal("afterwards: parameters", read(7, "cmdline")?, read(0, "cmdline")?);
    expect.equal("afterwards: nothing is under way", seen.rc("again")?, 64);
    Ok(())
}
