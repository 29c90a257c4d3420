//! `rtproof run` killed at moments of its whole life, many times in one guest, and what the program
//! gets out of it beside a load.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::case::Case;
use crate::cases::tune::tracking::{differing, script};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::programs::compiled;
use crate::seen::{Evidence, Json};

/// Rounds: two policies, three ways to kill, four phases of a run's life and its whole length.
const ROUNDS: usize = 30;

/// A round waits for its phase and kills at a random moment from then on; where the run stood is
/// looked at just before. What is compared are all values that can be written but those that change
/// by themselves, and the scheduling of all tasks that were there before.
const ROUND: &str = r#"cat >/tmp/program.sh <<'END'
: >/tmp/began; usleep 300000; : >/tmp/ended
END
launch() { rtproof run --cpus 2-3 --no-trace "$@" -- sh /tmp/program.sh; }
marked() { set -- /var/lib/rtproof/tune/*.running; [ -e "$1" ]; }
is_there() { [ -e $1 ]; }
until_or_end() { until "$@" || ! kill -0 $pid 2>/dev/null; do usleep 2000; done; }
now_ms() { awk '{ print int($1 * 1000) }' /proc/uptime; }
look() { { lines_of /tmp/kept; tasks; } >$1; }
differs() {
    awk -F'\t' 'NR == FNR { was[$1] = was[$1] $2 "\n"; next }
        { is[$1] = is[$1] $2 "\n" }
        END { for (key in was) if (key in is ? was[key] != is[key] : key !~ /^task/)
                  print key " was " was[key] " is " is[key] }' /tmp/look.before $1
}
phase() {
    if [ -e /tmp/ended ]; then marked && echo undo || echo end
    elif [ -e /tmp/began ]; then echo program
    elif marked; then echo changes
    else echo begin; fi
}
clear() {
    if [ $(($1 % 2)) = 0 ]; then rtproof tune undo; else rtproof run --cpus 2-3 --no-trace -- true; fi
}
settle() {
    for try in $(seq 100); do
        pidof rtproof >/dev/null || return
        usleep 100000
    done
    echo "round $1: rtproof is still there" >>/host/unsettled
}
round() {
    rm -f /tmp/began /tmp/ended
    case $(($1 % 2)) in 0) policy="--policy fifo";; 1) policy="--runtime 2ms --period 100ms";; esac
    share=$(($(od -An -N2 -tu2 /dev/urandom) % 1000))
    # No function of the shell, or $! were a shell that waits.
    rtproof run --cpus 2-3 --no-trace $policy -- sh /tmp/program.sh >/tmp/round.out 2>&1 &
    pid=$!
    case $(($1 / 6)) in
        0) span=$((life / 2));;
        1) span=150; until_or_end marked;;
        2) span=300; until_or_end is_there /tmp/began;;
        3) span=100; until_or_end is_there /tmp/ended;;
        *) span=$life;;
    esac
    moment=$((span * share))
    usleep $moment
    at=$(phase)
    case $(($1 / 2 % 3)) in
        0) how=KILL; kill -KILL $pid;;
        1) how=TERM; kill -TERM $pid;;
        2) how=all; killall -KILL rtproof;;
    esac
    wait $pid
    rc=$?
    settle $1
    cleared=-
    if [ $how = all ]; then
        is_left=no; marked && is_left=yes
        clear $1 >/tmp/clear.out 2>&1
        cleared=$is_left,$?,$(grep -c -e "journal .* is undone" -e "^Journal" -e "nothing to undo" /tmp/clear.out)
        [ $is_left = yes ] && cp /tmp/clear.out /host/clear.$1
    fi
    look /tmp/look.after
    differs /tmp/look.after >/tmp/differs
    count=$(grep -c ' was ' /tmp/differs)
    [ $count = 0 ] || cp /tmp/differs /host/differs.$1
    ends=$(grep -c -e "exit status" -e "^Undone" /tmp/round.out)
    [ $rc = 0 ] || cp /tmp/round.out /host/round.$1
    echo "$1 $how $at $((moment / 1000)) $rc $cleared $count $ends" >>/host/rounds
}
values >/tmp/first
launch >/dev/null 2>&1
sleep 1
values >/tmp/second
diff /tmp/first /tmp/second | sed -n 's|^[-+<>] *\(/[^\t]*\)\t.*|\1|p' | sort -u >/tmp/own
cp /tmp/own /host/own
echo none >>/tmp/own
grep -vxF -f /tmp/own /tmp/tracked >/tmp/kept
track first; sleep 1; track before
look /tmp/look.before
cp /tmp/look.before /host/compared
began=$(now_ms); launch >/dev/null 2>&1; life=$(($(now_ms) - began))
echo $life >/host/life"#;

/// The same loop started plainly and by `run`, beside endless loops on every CPU.
const BESIDE: &str =
    "for hog in 1 2 3 4 5 6 7 8; do (while :; do :; done) & hogs=\"$hogs $!\"; done
    run plain loop
    run launched rtproof run --cpus 3 --no-trace --json /tmp/o/launched.json -- loop
    kill $hogs
    wait";

const LOOP: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#define CYCLES 2000
static long late[CYCLES];
static int order(const void *a, const void *b)
{
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}
int main(void)
{
    struct timespec due, now;
    mlockall(MCL_CURRENT | MCL_FUTURE);
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (int i = 0; i < CYCLES; i++) {
        due.tv_nsec += 1000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        late[i] = (now.tv_sec - due.tv_sec) * 1000000000L + now.tv_nsec - due.tv_nsec;
    }
    qsort(late, CYCLES, sizeof late[0], order);
    printf("p50 %ld p99 %ld worst %ld\n", late[CYCLES / 2], late[CYCLES * 99 / 100],
           late[CYCLES - 1]);
    return 0;
}
"#;

pub(super) fn case(kernel: &'static str) -> Case {
    let last = ROUNDS - 1;
    Case::new(
        format!("launch/killed/{kernel}"),
        "run is killed at 30 moments of its life, by SIGKILL, SIGTERM and together with its guard, \
         and no value differs afterwards; the program is less late than one started plainly",
        Machine::new(kernel).cpus(4),
    )
    .limit_s(600)
    .made("loop", looping)
    .script(script(&format!(
        "{ROUND}
         for number in $(seq 0 {last}); do round $number; done
         run status rtproof tune status
         track after
         {BESIDE}"
    )))
    .expect(as_before)
    .other_word("clear $1 >", "true >", "values that differ in rounds")
    .other_word(
        "--cpus 3 --no-trace",
        "--cpus 3 --policy other --no-trace",
        "launched: policy",
    )
}

fn looping(_: &Path, folder: &Path) -> Result<PathBuf> {
    compiled(folder, "loop.c", LOOP, &["cc", "-O2", "-o", "loop", "loop.c"])
}

fn as_before(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let text = seen.text("rounds")?;
    let rounds: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    expect.equal("rounds", rounds.len(), ROUNDS);
    let compared = seen.text("compared")?.lines().count();
    expect.that("values compared", "500 or more", compared >= 500, compared);
    let differing_in: Vec<_> = rounds.iter().filter(|of| of.get(6) != Some(&"0")).collect();
    expect.equal("values that differ in rounds", differing_in, Vec::new());
    // A moment after the last change leaves nothing to undo: it is not counted.
    let killed = |phase: &str| rounds.iter().filter(|of| of.get(2) == Some(&phase)).count();
    let phases = ["begin", "changes", "program", "undo"].map(|phase| (phase, killed(phase)));
    for (phase, count) in phases {
        expect.that(&format!("killed during {phase}"), "1 or more", count >= 1, &text);
    }
    let sum: usize = phases.iter().map(|(_, count)| count).sum();
    expect.that("kills", "27 or more of 30", sum >= 27, &text);
    // It was run that was killed: it reports nothing, and the signal is its end.
    let hit = |of: &&Vec<&str>| of[1] != "TERM" && ["changes", "program"].contains(&of[2]);
    let killed: Vec<_> = rounds.iter().filter(hit).collect();
    let is_killed = |of: &&Vec<&str>| of[4] == "137" && of.get(7) == Some(&"0");
    expect.that("SIGKILL ends run", "all", killed.iter().all(is_killed), &text);
    let of_term = rounds.iter().filter(|of| of[1] == "TERM" && of[2] == "program");
    let codes: Vec<_> = of_term.map(|of| of[4]).collect();
    expect.that("SIGTERM is run's end, too", "143", codes.iter().all(|of| *of == "143"), &codes);
    // What outlived both processes is undone by the next command, which reports an undo, or that
    // there was nothing: both died between the journal and its first change.
    let cleared: Vec<_> = rounds.iter().filter(|of| of[5].starts_with("yes")).collect();
    expect.that("left by run and guard", "1 or more", !cleared.is_empty(), &text);
    let is_said = |of: &&Vec<&str>| of[5].starts_with("yes,0,") && !of[5].ends_with(",0");
    expect.that("each is undone and said", "all", cleared.iter().all(is_said), &text);
    expect.that("all processes end", "none left", seen.text("unsettled").is_err(), "some");
    expect.contains("nothing is applied", &seen.out("status")?, "nothing of rtproof is applied");
    expect.equal("values that differ", differing(seen, ["first", "before", "after"])?, Vec::new());
    let [plain, launched] = ["plain", "launched"].map(|name| lateness(seen, name));
    let (plain, launched) = (plain?, launched?);
    let got = Json::parse("launched.json", &seen.text("launched.json")?)?;
    let policy = got.text("/threads/0/scheduling/policy");
    expect.equal("launched: policy", policy, "SCHED_FIFO");
    expect.that("99th percentile", "below plain's", launched.1 < plain.1, (launched, plain));
    println!(
        "launch: {sum} kills in {} {phases:?}; {} left by run and guard; µs p50, p99, worst: \
         plainly {plain:?}, by run {launched:?}",
        seen.release(),
        cleared.len()
    );
    Ok(())
}

/// Median, 99th percentile and worst, µs, as the loop printed them.
fn lateness(seen: &Evidence, name: &str) -> Result<(i64, i64, i64)> {
    let text = seen.out(name)?;
    let numbers: Vec<i64> =
        text.split_whitespace().filter_map(|word| word.parse::<i64>().ok()).collect();
    match numbers[..] {
        [median, p99, worst] => Ok((median / 1000, p99 / 1000, worst / 1000)),
        _ => anyhow::bail!("{name}.out holds {text:?}"),
    }
}
