//! The tables of what changes did to latency: since version 3.

use super::table::{PLAIN, Table, c, int, keyed, opt_int, text};

pub(super) const TRIAL: Table = Table {
    name: "trial",
    since: 3,
    about: "How changes of the machine were tried (tune apply --prove, experiment): at most one \
            row.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        int("seed", "Seed of the order of slices."),
        c(
            "design",
            "TEXT NOT NULL CHECK (design IN ('single', 'mirrored', 'screened', 'boots'))",
            "single: one knob after the other. mirrored: all at once, in each pair some on in one \
             slice and the others in the other. screened: all at once first, then pairs of what \
             stood out. boots: pairs of boots.",
        ),
        int("pairs", "Pairs of slices planned for each knob."),
        int("slice_ns", "Length of a slice."),
        int("margin_ppm", "Differences up to this do not matter, 1/1000000."),
        int("level_ppb", "P values below this count, 1/1000000000."),
        opt_int(
            "detectable_ppm",
            "Smallest change of p99.9 that was to be seen, 1/1000000. NULL: none.",
        ),
    ],
    ..PLAIN
};

pub(super) const KNOB: Table = Table {
    name: "knob",
    since: 3,
    about: "Changes that belong together, and what was found.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
        text("name", "Its checks."),
        text("changes", "What it changes, JSON array of strings."),
        c(
            "how",
            "TEXT NOT NULL CHECK (how IN ('toggled', 'once', 'not_tried'))",
            "toggled: on and off in pairs; once: before and after, drift is not excluded.",
        ),
        c(
            "decision",
            "TEXT NOT NULL CHECK (decision IN ('helps', 'hurts', 'no_difference', \
             'cannot_decide', 'not_tried'))",
            "What was found.",
        ),
        c("kept", "INTEGER NOT NULL CHECK (kept IN (0, 1))", "1: left in force."),
        text("why", "Why, and the next step."),
    ],
    ..PLAIN
};

pub(super) const EFFECT: Table = Table {
    name: "effect",
    since: 3,
    about: "What a knob does to a statistic of a slice. Ratios: with the knob to without it.",
    columns: &[
        c("knob", "INTEGER NOT NULL REFERENCES knob (number)", "Knob."),
        c(
            "statistic",
            "TEXT NOT NULL CHECK (statistic IN ('p999', 'max'))",
            "p999: p99.9 of all wake-ups due, missed ones among them; max: the latest.",
        ),
        int("pairs", "Pairs compared; 0 of before and after."),
        int("off_ns", "Median of the slices without it."),
        int("on_ns", "Median of the slices with it."),
        int("ratio_ppm", "Hodges-Lehmann estimate of the ratio, 1/1000000."),
        opt_int("low_ppm", "Lower end of its 95 % interval, 1/1000000. NULL: none."),
        opt_int("high_ppm", "Upper end, 1/1000000. NULL: none."),
        opt_int("p_ppb", "P value, exact sign-flip test, 1/1000000000. NULL: not tested."),
        opt_int("adjusted_ppb", "The same after Holm. NULL: not tested."),
    ],
    ..keyed(", PRIMARY KEY (knob, statistic)")
};

pub(super) const SLICE: Table = Table {
    name: "slice",
    since: 3,
    about: "Slices of time with and without knobs, all measured CPUs together.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
        c(
            "part",
            "TEXT NOT NULL CHECK (part IN ('before', 'pair', 'screen', 'together', 'once', \
             'after'))",
            "before: nothing changed. pair: one of a pair with and without a knob. screen: one of \
             a pair with all knobs, each on in one of them. together: one of a pair with all that \
             seems to help, and nothing. once: with a change that is made once. after: with what \
             was kept.",
        ),
        int("pair", "Pair: 0, 1, ..."),
        text("knobs_on", "Numbers of the knobs that were on, JSON array."),
        int("from_ns", "Start, after the origin."),
        int("to_ns", "End, after the origin."),
        int("n", "Wake-ups that were due."),
        opt_int("p999_ns", "p99.9 of those. NULL: too few."),
        opt_int("max_ns", "Latest wake-up. NULL: there was none."),
        int("missed", "Wake-ups due while the thread was still late."),
    ],
    ..PLAIN
};
